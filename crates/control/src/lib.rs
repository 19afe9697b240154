//! Inventory, desired state and jobs; the management interface over a Unix socket.
