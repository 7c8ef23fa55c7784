#!/bin/sh
# A worker in shell, with curl and jq: HOLDFAST_TOKEN=… sh worker.sh http://localhost:5678 thumbnails
url=$1 queue=$2 worker="$(hostname)-$$" ttl=30 stop=
umask 077
files=$(mktemp -d) && trap 'rm -r "$files"' EXIT
trap 'stop=yes' INT TERM
printf 'header = "Authorization: Bearer %s"\n' "$HOLDFAST_TOKEN" >"$files/headers" # not in the list of processes

call() { # VERB FIELDS FILE: sends a request until its result is known (the key makes repeats harmless); returns 1 if refused
    read -r key </proc/sys/kernel/random/uuid
    while :; do
        status=$(printf '{"worker": "%s", %s}' "$worker" "$2" | curl -sS -m 30 -K "$files/headers" --json @- \
            -H "Idempotency-Key: $key" -o "$3" -w '%{http_code}' "$url/v1/$1")
        case $status in
            200) return 0 ;;
            429 | 5?? | 000) sleep 1 ;;
            *) cat "$3" >&2; return 1 ;;
        esac
    done
}

renew() { # LEASE: renews the lease until it is lost or this process ends
    trap 'kill "$pause"; exit' TERM
    while sleep $((ttl / 3)) & pause=$!; wait "$pause"; do call heartbeat "$1, \"ttl\": $ttl" "$files/beat" || break; done
}

perform() { # your code: reads the data of the job, prints the result as JSON; any exit code other than 0 fails the job
    cat
}

while [ -z "$stop" ]; do
    call pop "\"queues\": [\"$queue\"], \"ttl\": $ttl, \"wait\": 5" "$files/job" || exit
    jq -r '.result[] | "\"jid\": \(.jid | tojson), \"token\": \(.token)", (.data | tojson)' "$files/job" >"$files/lines"
    { read -r lease && read -r data; } <"$files/lines" || continue
    renew "$lease" &
    beat=$!
    if printf %s "$data" | perform >"$files/result" 2>"$files/error"; then
        call complete "$lease, \"result\": $(cat "$files/result")" "$files/end"
    else
        call fail "$lease, \"group\": \"shell\", \"message\": $(jq -Rs . "$files/error")" "$files/end"
    fi
    kill "$beat" 2>/dev/null
    wait "$beat" 2>/dev/null
done
exit 0
