"""What the children of all pools of seats that block do: their clients, their keeper, their loop, and a crew."""

from holdfast.work.forking.forked import Forking
from holdfast.work.parent.child import Place
from holdfast.work.performing.around import Around
from holdfast.work.performing.making import make_performer
from holdfast.work.pools.beating import BeatingThread
from holdfast.work.pools.blocking import BlockingLoop
from holdfast.work.pools.crew import Crew
from holdfast.work.queues.routing import make_route
from holdfast.work.signals import Stop


def work_blocking(place: Place, around: Around, crew: Crew, stop: Stop) -> bool:
    """Work in a forked child, with that crew, until told to stop. Answers whether the process is used up."""
    client = place.store.client(place.name)
    beats = place.store.beating_client(place.name)
    performer = make_performer(place.store, place.settings, place.name, client, around=around)
    route = make_route(place.settings, place.store, place.name, client.shard)

    def on_news() -> None:
        jobs.look()
        place.poke()

    beating = BeatingThread(beats, place.name, lambda: list(jobs.running.values()), on_news)
    forking = Forking(place.store, place.settings, around)
    jobs = BlockingLoop(place, client, performer, crew, stop, route, forking, beating.learn, around.title)
    beating.start()
    try:
        jobs.run()
    finally:
        beating.close()
        beats.close()
        client.close()
    return jobs.is_used_up
