import ipaddress

network = ipaddress.ip_network("10.1.0.0/22")
print(network.num_addresses, list(network.subnets(new_prefix=24)), ipaddress.ip_address("10.1.3.9") in network)
print(ipaddress.ip_address("2001:db8::1").exploded, ipaddress.ip_interface("192.168.0.5/24").network)
print(list(ipaddress.summarize_address_range(ipaddress.ip_address("1.0.0.0"), ipaddress.ip_address("1.0.1.3"))))
