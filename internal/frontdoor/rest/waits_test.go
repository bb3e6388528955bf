package rest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/waits"
)

// On each path that waits, the third waiting request is refused until one of the first two has
// ended.
func TestNumberOfWaitingRequestsIsBounded(t *testing.T) {
	f := openFabric(t, func(o *Options) { o.Waits = waits.New(3, 2) })
	id := f.batch(`{"calls":[{"server":"demo","tool":"hang","arguments":{}}]}`).ID
	call := f.callID(id, 0)
	ended := f.batch(`{"calls":[{"server":"demo","tool":"echo","arguments":{"text":"a"}}]}`).ID
	f.do("GET", "/batches/"+string(ended)+"/results?follow=true", "")
	first, _ := f.stream("GET", "/events", "")
	f.stream("GET", "/events", "")
	for _, path := range []string{"/events", "/batches/" + string(id) + "/events", "/batches/" + string(id) + "/results?follow=true", "/calls/" + call + "?wait=1"} {
		res, err := f.client.Do(f.request("GET", path, nil))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "1" || !strings.Contains(string(body), "2 of your requests wait") || !res.Close {
			t.Errorf("%s: %s, closed %v, %v %s", path, res.Status, res.Close, res.Header, body)
		}
	}
	for _, path := range []string{"/batches/" + string(id), "/batches/" + string(id) + "/results", "/calls/" + call, "/calls/" + f.callID(ended, 0) + "?wait=1", "/servers"} {
		if a := f.do("GET", path, ""); a.status != http.StatusOK {
			t.Errorf("%s does not wait and is answered with %d %s", path, a.status, a.body)
		}
	}
	_ = first.Body.Close()
	for deadline := time.Now().Add(10 * time.Second); f.do("GET", "/calls/"+call+"?wait=1", "").status != http.StatusOK; {
		if time.Now().After(deadline) {
			t.Fatal("the place of a stream that has gone is not given to another request")
		}
	}
	f.Worker.Finish()
}
