package quota

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openWithoutRedis opens limits without Redis.
func openWithoutRedis(t testing.TB, o Options) *Quota {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	q := Open(o)
	t.Cleanup(q.Close)
	return q
}

// door opens the limits of one of several front doors at a Redis. cut takes its
// connections away, as a death does.
func door(t testing.TB, s *confirmtest.Redis, name string, c settings.Limits) (q *Quota, log *logtest.Log, cut func()) {
	t.Helper()
	return openDoor(t, s, Options{Rules: c, Door: name, lifetime: time.Minute})
}

// openDoor is door with the options. Neither the leases nor the requests to Redis expire because the
// test or Redis stands still for a moment, unless the options say so.
func openDoor(t testing.TB, s *confirmtest.Redis, o Options) (q *Quota, log *logtest.Log, cut func()) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.Address, DisableIdentity: true, ContextTimeoutEnabled: true, ReadTimeout: time.Minute})
	log = new(logtest.Log)
	o.Redis, o.Log, o.timeout = client, slog.New(slog.NewTextHandler(log, nil)), time.Minute
	o.Routers, o.Renew = func() int { return 2 }, cmp.Or(o.Renew, 100*time.Millisecond)
	q = Open(o)
	var once sync.Once
	cut = func() { once.Do(func() { _ = client.Close() }) }
	t.Cleanup(cut)
	t.Cleanup(q.Close)
	return q, log, cut
}

func forAll(r settings.PrincipalRule) settings.Limits {
	return settings.Limits{Principals: []settings.PrincipalRule{r}}
}

var ci = &schema.Principal{Name: "ci", Groups: []string{"dev"}}

// enter enters or fails.
func enter(t testing.TB, q *Quota) Pass {
	t.Helper()
	pass, err := q.Enter(context.Background(), ci)
	if err != nil {
		t.Fatal(err)
	}
	return pass
}

// refusedWith returns the time to wait before a retry from a refusal of the kind.
func refusedWith(t testing.TB, err error, kind schema.Kind) time.Duration {
	t.Helper()
	e := schema.AsError(err)
	if e == nil || e.Kind != kind || !e.Retryable || e.RetryAfter <= 0 || !strings.HasSuffix(e.Detail, ".") && !strings.HasSuffix(e.Detail, ")") {
		t.Fatalf("%+v", e)
	}
	return e.RetryAfter
}

// takeAll takes slots until it is refused, and says how many it got.
func takeAll(q *Quota, most int) (passes []Pass) {
	for range most {
		pass, err := q.Enter(context.Background(), ci)
		if err != nil {
			break
		}
		passes = append(passes, pass)
	}
	return passes
}

func leaveAll(passes []Pass) {
	for _, p := range passes {
		p.Leave()
	}
}
