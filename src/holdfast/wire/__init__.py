"""How calls travel: plans say what to send next, runners pass it on, links own the sockets."""
