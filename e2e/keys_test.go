package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// madeKey is the response to a request that creates or rotates a key.
type madeKey struct{ ID, Secret, ETag string }

func (d *door) keyRequest(t testing.TB, status int, method, path, body string, header ...string) (k madeKey) {
	t.Helper()
	a := d.ask(t, method, path, body, append([]string{"X-API-Key: honest"}, header...)...)
	if a.status != status || json.Unmarshal(a.body, &k) != nil {
		t.Fatalf("%s %s is answered with %d %s", method, path, a.status, a.body)
	}
	return k
}

func TestKeyChangesReachEveryFrontDoor(t *testing.T) {
	nats := startNATS(t, t.TempDir())
	open := func() *door {
		d := startFrontDoor(t, setup{nats: nats.url, config: configOf("honest")})
		return d
	}
	doors := []*door{open(), open()}
	startWorker(t, setup{nats: nats.url, servers: serversFile(t, map[string]entry{"everything": {Command: filepath.Join(bin(t), "callyard"), Args: []string{"demo-server"}, RiskLevel: 1}})})
	call := func(d *door, key string) (int, error) {
		a, err := d.try("POST", toolPath("everything", "echo"), `{"message":"x"}`, "X-API-Key: "+key)
		if err != nil {
			return 0, err
		}
		return a.status, nil
	}
	answers := func(what string, d *door, key string, status int) {
		t.Helper()
		eventually(t, soon, what, func() error {
			if got, err := call(d, key); err != nil || got != status {
				return fmt.Errorf("%d, %v", got, err)
			}
			return nil
		})
	}
	k := doors[0].keyRequest(t, http.StatusCreated, "POST", "/keys", `{"name":"nightly","scopes":["tools:call:everything"]}`)
	eventually(t, soon, "the server", func() error {
		if got, err := call(doors[1], k.Secret); err != nil || got != http.StatusOK {
			return fmt.Errorf("%d, %v", got, err)
		}
		return nil
	})
	answers("the new key", doors[0], k.Secret, http.StatusOK)

	var secret atomic.Pointer[string]
	secret.Store(&k.Secret)
	var load sync.WaitGroup
	stop := make(chan struct{})
	var calls, refused atomic.Int64
	for i := range 4 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				calls.Add(1)
				if status, err := call(doors[i%2], *secret.Load()); err != nil || status != http.StatusOK {
					refused.Add(1)
				}
			}
		})
	}
	first := k.Secret
	for range 3 {
		k = doors[0].keyRequest(t, http.StatusOK, "POST", "/keys/"+k.ID+"/rotate", `{"grace_seconds":60}`, "If-Match: "+k.ETag)
		secret.Store(&k.Secret)
		before := calls.Load()
		eventually(t, soon, "calls with the new secret", func() error {
			if n := calls.Load() - before; n < 20 {
				return fmt.Errorf("%d calls", n)
			}
			return nil
		})
	}
	close(stop)
	load.Wait()
	if refused.Load() > 0 {
		t.Errorf("%d of %d calls were refused", refused.Load(), calls.Load())
	}
	answers("the first secret in its time of grace", doors[1], first, http.StatusOK)
	doors[1].keyRequest(t, http.StatusOK, "DELETE", "/keys/"+k.ID, "", "If-Match: "+k.ETag)
	answers("the revoked key", doors[0], k.Secret, http.StatusUnauthorized)
	answers("the revoked key's first secret", doors[0], first, http.StatusUnauthorized)
}
