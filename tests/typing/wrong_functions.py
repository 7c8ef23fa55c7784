"""What type checkers must find wrong about function jobs: each line marked so, and no other."""

import holdfast

app = holdfast.Client("redis://nowhere")
aapp = holdfast.AsyncClient("redis://nowhere")


@app.job(queue="mail")
def welcome(user_id: int, lang: str = "en") -> str:
    return f"{user_id} {lang}"


@aapp.job()
async def later(user_id: int) -> list[int]:
    return [user_id]


@app.job
def bare(number: int) -> str:
    return str(number)


@app.job(queues="mail")  # wrong: an option that does not exist
def misled() -> None: ...


@app.job(retries="five")  # wrong: an option of another type
def confused() -> None: ...


@app.job(max_losses="three")  # wrong: an option of another type
def careless() -> None: ...


def blocking() -> None:
    welcome.put("seven")  # wrong: an argument of another type
    welcome.delay(7)  # wrong: a method of another library
    print(app.job("a").sate)  # wrong: an attribute that a job has not
    app.job("mail")(bare)  # wrong: a job is no decorator
    welcome.put(7, language="de")  # wrong: an argument that does not exist
    welcome.put()  # wrong: an argument that is missing
    welcome.put(7, "de", 3)  # wrong: an argument too many
    welcome.put_in(60)  # wrong: the function's own argument is missing
    welcome.put_in("soon", 7)  # wrong: no time
    welcome.put_at("2030-01-01", 7)  # wrong: no moment
    welcome.every(60).put("seven")  # wrong: an argument of another type
    welcome.every([60]).put(7)  # wrong: no time
    welcome.bind("seven")  # wrong: an argument of another type
    app.schedule(welcome.call("seven"), every=60)  # wrong: an argument of another type
    welcome.every(60, at="03:00")  # wrong: no time of day
    app.schedule(welcome.call(7))  # wrong: every is missing
    app.schedule(welcome.call(7), every=60, zon="UTC")  # wrong: an option that does not exist
    app.schedule(welcome.put(7), every=60)  # wrong: a put in place of a call
    welcome.put_many(7)  # wrong: no list
    welcome.options(dely=3)  # wrong: an option that does not exist
    welcome.options(retries=3)  # wrong: an option of the function, not of a put
    welcome("seven")  # wrong: an argument of another type
    bare.put("seven")  # wrong: an argument of another type
    number: int = welcome.put(7).result()  # wrong: the function returns another type
    print(number)


async def awaiting() -> None:
    await later.put("seven")  # wrong: an argument of another type
    later.put(7).result()  # wrong: put is to be awaited first
    handle = await later.put(7)
    number: int = await handle  # wrong: the function returns another type
    texts: list[str] = await holdfast.gather(handle)  # wrong: the function returns another type
    print(number, texts)
    for _ in holdfast.as_completed([handle]):  # wrong: not awaited
        pass
    holdfast.gather(handle, welcome.put(7))  # wrong: handles of two clients
