"""Which clusters each Workload is nominated to: filters, then scores, over what its Placement authorises."""
