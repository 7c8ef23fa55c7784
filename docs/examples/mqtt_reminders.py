"""Delay messages of an MQTT broker: put `remind/ID/SECONDS` into a topic, and publish it as `due/ID` when it is ready."""

import paho.mqtt.client as mqtt

import holdfast

topics = holdfast.Client().topics
broker = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)


def put(_client, _userdata, message):
    try:
        _, id, seconds = message.topic.split("/")
        topics["reminders"].put(id, message.payload, delay=float(seconds))
    except ValueError as error:  # also a UsageError, such as for a delay below 0
        print(f"{message.topic}: {error}")


def publish(item):
    sent = broker.publish(f"due/{item.id}", item.body, qos=1)
    sent.wait_for_publish(10)
    if not sent.is_published():
        raise TimeoutError("the broker did not respond")  # the message comes back


broker.on_message = put
broker.on_connect = lambda client, *_: client.subscribe("remind/+/+", qos=1)
broker.connect("localhost")
topics.subscribe("reminders", publish)
broker.loop_forever()
