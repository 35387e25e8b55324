from unittest import mock


class Service:
    def fetch(self, key):
        raise NotImplementedError


service = Service()
with mock.patch.object(service, "fetch", return_value=5) as fetch:
    print(service.fetch("a"), fetch.call_args)
double = mock.Mock(side_effect=[1, ValueError("no")])
print(double())
try:
    double()
except ValueError as error:
    print(error, double.call_count, mock.sentinel.x)
