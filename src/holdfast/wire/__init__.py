"""How calls travel: plans decide what to send next, runners pass it on, links own the sockets."""
