// A worker in Go that uses only the standard library: HOLDFAST_TOKEN=… go run worker.go http://localhost:5678 thumbnails
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type object map[string]any

type job struct {
	Jid   string          `json:"jid"`
	Token json.Number     `json:"token"`
	Data  json.RawMessage `json:"data"`
}

type reply struct {
	Result json.RawMessage `json:"result"`
	Title  string          `json:"title"`
}

const ttl = 30 // seconds of a lease

var errRefused = errors.New("refused")
var url, queue = os.Args[1], os.Args[2]
var worker = func() string { host, _ := os.Hostname(); return fmt.Sprintf("%s-%d", host, os.Getpid()) }()
var client = http.Client{Timeout: 30 * time.Second}

// call sends a request until its result is known; the key makes repeats harmless.
func call(verb string, fields object) (json.RawMessage, error) {
	fields["worker"] = worker
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	key := make([]byte, 16)
	if _, err = rand.Read(key); err != nil {
		return nil, err
	}
	for ; ; time.Sleep(time.Second) {
		request, err := http.NewRequest("POST", url+"/v1/"+verb, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", fmt.Sprintf("%x", key))
		if token := os.Getenv("HOLDFAST_TOKEN"); token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			continue
		}
		var got reply
		err = json.NewDecoder(response.Body).Decode(&got)
		response.Body.Close()
		if response.StatusCode == 200 && err == nil {
			return got.Result, nil
		}
		if response.StatusCode < 500 && response.StatusCode != 429 && err == nil {
			return nil, fmt.Errorf("%w: %s", errRefused, got.Title)
		}
	}
}

// perform is your code: its return value is the result, an error fails the job.
func perform(one job) (any, error) {
	return one.Data, nil
}

func settle(one job) error {
	lease := func(more object) object { more["jid"], more["token"] = one.Jid, one.Token; return more }
	beat, done := time.NewTicker(ttl*time.Second/3), make(chan bool)
	defer close(done)
	defer beat.Stop()
	go func() {
		for {
			select {
			case <-beat.C:
				if _, err := call("heartbeat", lease(object{"ttl": ttl})); err != nil {
					log.Print(err)
				}
			case <-done:
				return
			}
		}
	}()
	result, err := perform(one)
	if err != nil {
		_, err = call("fail", lease(object{"group": "go", "message": err.Error()}))
		return err
	}
	_, err = call("complete", lease(object{"result": result}))
	return err
}

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	for len(stop) == 0 {
		found, err := call("pop", object{"queues": []string{queue}, "ttl": ttl, "wait": 5})
		if err != nil {
			log.Fatal(err)
		}
		var jobs []job
		if err := json.Unmarshal(found, &jobs); err != nil {
			log.Fatal(err)
		}
		for _, one := range jobs {
			if err := settle(one); err != nil {
				log.Print(err) // the lease is lost: another worker has the job now
			}
		}
	}
}
