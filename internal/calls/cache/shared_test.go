package cache

import (
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/bus/porttest"
	"github.com/callyard/callyard/pkg/risk"
)

func openAt(t *testing.T, s *confirmtest.Redis) (*Cache, *logtest.Log) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.Address, DisableIdentity: true, ContextTimeoutEnabled: true, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = client.Close() })
	log := new(logtest.Log)
	c := Open(Options{Config: settings.CacheDefaults(), Redis: client, Log: slog.New(slog.NewTextHandler(log, nil)), timeout: time.Minute})
	t.Cleanup(c.Close)
	return c, log
}

func TestFrontDoorsHaveEachOthersResultsThroughRedis(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	a, _ := openAt(t, s)
	b, _ := openAt(t, s)
	one := &tool{body: "\x00one\n"}
	if got := ask(t, a, newCall(), minute, one); !got.Cache.Miss || !got.Cache.Stored {
		t.Errorf("%+v", got.Cache)
	}
	got := ask(t, b, newCall(), minute, one)
	if !got.Cache.Hit || string(got.Body) != one.body || got.Cache.Age < 0 || got.Cache.Age+got.Cache.TTL != time.Minute || got.Cache.Age > 10*time.Second {
		t.Errorf("%+v", got)
	}
	ttl, err := s.Client.PTTL(t.Context(), name(keyOf(newCall(), false))).Result()
	if err != nil || ttl <= 0 || ttl > time.Minute {
		t.Errorf("%s, %v", ttl, err)
	}
	bob := newCall()
	bob.Principal.Name = "bob"
	if got := ask(t, b, bob, minute, one); got.Cache.Hit {
		t.Error("another principal's result")
	}
}

func TestIdenticalCallsRunOnceThroughRedis(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	c, _ := openAt(t, s)
	hundred(t, c, func() { polltest.Until(t, "100 calls wait", func() bool { return c.waiting() == 100 }) })
}

func TestInvalidRedisEntryIsAMiss(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	c, _ := openAt(t, s)
	k := name(keyOf(newCall(), false))
	if err := s.Client.Set(t.Context(), k, "short", 0).Err(); err != nil {
		t.Fatal(err)
	}
	one := &tool{body: "one"}
	if got := ask(t, c, newCall(), minute, one); got.Cache.Hit || !got.Cache.Stored {
		t.Errorf("%+v", got.Cache)
	}
	if got := ask(t, c, newCall(), risk.Cache{TTL: time.Nanosecond}, one); got.Cache.Hit {
		t.Error("older than the policy of now lets it be")
	}
}

func TestFullRedisIsLoggedOnceAndCachesNothing(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "")
	c, log := openAt(t, s)
	if err := s.Client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	one := &tool{body: "one"}
	for range 5 {
		if got := ask(t, c, newCall(), minute, one); got.Cache.Hit || got.Cache.Stored || !got.Cache.Miss {
			t.Errorf("%+v", got.Cache)
		}
	}
	if n := log.Count("level="); n != 1 || log.Count("refuses") != 1 {
		t.Errorf("said %d times: %s", n, log)
	}
	if err := s.Client.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, c, newCall(), minute, one); !got.Cache.Stored {
		t.Errorf("%+v", got.Cache)
	}
}

func TestUnreachableRedisIsLoggedOnceAndEveryCallRuns(t *testing.T) {
	s := confirmtest.StartRedis(t, "", porttest.Address(t))
	c, log := openAt(t, s)
	one := &tool{body: "one"}
	ask(t, c, newCall(), minute, one)
	if err := s.Dump(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	slow := 0
	for range 20 {
		began := time.Now()
		if got := ask(t, c, newCall(), minute, one); got.Cache.Hit || got.Cache.Stored || !got.Cache.Miss {
			t.Errorf("%+v", got.Cache)
		}
		if time.Since(began) > redisTimeout {
			slow++
		}
	}
	if slow > 10 {
		t.Errorf("%d of 20 calls waited for Redis", slow)
	}
	if n := log.Count("Redis does not answer"); n != 1 {
		t.Errorf("said %d times", n)
	}
	s.Restart(t)
	polltest.Until(t, "the result is cached", func() bool { return ask(t, c, newCall(), minute, one).Cache.Hit })
	if n := log.Count("Redis answers again"); n != 1 {
		t.Errorf("its return was said %d times", n)
	}
}
