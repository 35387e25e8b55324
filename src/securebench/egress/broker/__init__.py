"""The credential broker: agents get a base URL and a placeholder, the broker holds the key, judges and meters."""

from securebench.egress.broker.access import ModelAccess
from securebench.egress.broker.broker import Broker
from securebench.egress.broker.budget import BudgetLimits
from securebench.egress.broker.exchange import Exchange, OnExchange, Reply
from securebench.egress.broker.metering import Usage
from securebench.egress.broker.session import BrokerSession

__all__ = [
    "Broker",
    "BrokerSession",
    "BudgetLimits",
    "Exchange",
    "ModelAccess",
    "OnExchange",
    "Reply",
    "Usage",
]
