"""What a worker gets from the driver and gives back."""
