"""What type checkers must find wrong about topics: each line marked so, and no other."""

import holdfast

client = holdfast.Client("redis://nowhere")
aclient = holdfast.AsyncClient("redis://nowhere")


def blocking() -> None:
    mail = client.topics["mail"]
    mail.put("a")  # wrong: a body is missing
    mail.put(7, "x")  # wrong: an id of another type
    mail.put("a", "x", later=5)  # wrong: an argument that does not exist
    mail.put("a", "x", delay="soon")  # wrong: no time
    mail.reserve().done()  # wrong: there may be none
    mail.pull(max="now")  # wrong: no moment
    client.topics.put("mail", "a", "x")  # wrong: a moment is missing
    client.topics.subscribe("mail", 7)  # wrong: no handler
    client.topics.subscribe("t", to_queue="q", klass="K", retires=2)  # wrong: no such option
    client.topics[7]  # wrong: no name


async def awaited() -> None:
    mail = aclient.topics["mail"]
    (await mail.put("a", "x")).done()  # wrong: an answer without that
    with await mail.reserve():  # wrong: there may be none, and it is awaited
        pass
    print((await mail.counts).sleeping)  # wrong: a count that does not exist
