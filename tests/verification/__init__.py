"""The finite-element side against closed forms, orders and laws."""
