"""Model providers as data: a file says where one is, which requests it takes, how it counts and what it costs."""

from securebench.egress.providers.loading import load_provider, load_provider_file, provider_names
from securebench.egress.providers.schema import Provider

__all__ = ["Provider", "load_provider", "load_provider_file", "provider_names"]
