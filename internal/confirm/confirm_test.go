package confirm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

func TestRedisKeepsThePromisesOfAStore(t *testing.T) {
	s := startRedis(t, "", "")
	confirmtest.Run(t, func(t *testing.T, now func() time.Time) confirm.Store { return s.store(t, now) })
}

func TestJetStreamKeepsThePromisesOfAStore(t *testing.T) {
	s := bustest.Start(t)
	confirmtest.Run(t, func(t *testing.T, now func() time.Time) confirm.Store {
		store, err := confirm.OpenStream(t.Context(), s.Connect(t, "test"), now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		return store
	})
}

func TestARedisClusterKeepsThePromisesOfAStore(t *testing.T) {
	// One node that holds all slots answers as a Cluster does.
	address := freeAddress(t)
	startRedis(t, "", address, "--cluster-enabled", "yes")
	c := redis.NewClient(&redis.Options{Addr: address})
	defer c.Close()
	if err := c.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool {
		info, err := c.ClusterInfo(t.Context()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	})
	confirmtest.Run(t, func(t *testing.T, now func() time.Time) confirm.Store {
		return openRedis(t, confirm.RedisOptions{Addresses: []string{address}, Cluster: true, Now: now})
	})
}

// wait asks a process of its own until it says yes: it sends no signal.
func wait(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it did not come about in 20 s")
		}
	}
}

func TestOnlyTheHashOfATokenIsStored(t *testing.T) {
	s := startRedis(t, "", "")
	token, err := s.store(t, nil).Mint(t.Context(), "appr_1", "b", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Addr: s.address})
	defer c.Close()
	keys, err := c.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 1 || !strings.Contains(keys[0], "{"+confirm.Hash(token)+"}") {
		t.Fatalf("keys %v, %v", keys, err)
	}
	fields, err := c.HGetAll(t.Context(), keys[0]).Result()
	if err != nil || strings.Contains(fmt.Sprint(keys, fields), strings.TrimPrefix(token, "cyt_")) {
		t.Errorf("the token itself is stored: %v, %v", fields, err)
	}
	if ttl, err := c.TTL(t.Context(), keys[0]).Result(); err != nil || ttl < 24*time.Hour || ttl > 25*time.Hour {
		t.Errorf("kept for %s, %v", ttl, err)
	}
}

func TestARedisThatIsGoneIsDown(t *testing.T) {
	s := startRedis(t, "", "")
	store := s.store(t, nil)
	token, err := store.Mint(t.Context(), "appr_1", "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	s.kill()
	if _, err := store.Take(t.Context(), token, "a"); !errors.Is(err, confirm.ErrDown) {
		t.Errorf("take: %v", err)
	}
	if _, err := store.Mint(t.Context(), "appr_1", "", time.Minute); !errors.Is(err, confirm.ErrDown) {
		t.Errorf("mint: %v", err)
	}
	if _, err := confirm.OpenRedis(t.Context(), confirm.RedisOptions{Addresses: []string{s.address}}); err == nil || !strings.Contains(err.Error(), s.address) {
		t.Errorf("open: %v", err)
	}
	startRedis(t, s.dir, "")
	if _, err := store.Take(t.Context(), token, "a"); !errors.Is(err, confirm.ErrUnknown) {
		t.Errorf("a server that came back empty: %v", err)
	}
}

func TestSentinelNamesTheServer(t *testing.T) {
	at, sentinel := freeAddress(t), freeAddress(t)
	startRedis(t, "", at)
	dir := t.TempDir()
	config := filepath.Join(dir, "sentinel.conf")
	host, port, _ := strings.Cut(at, ":")
	_, sentinelPort, _ := strings.Cut(sentinel, ":")
	if err := os.WriteFile(config, fmt.Appendf(nil, "bind 127.0.0.1\nport %s\nsentinel monitor main %s %s 1\n", sentinelPort, host, port), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("redis-server", config, "--sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	c := redis.NewClient(&redis.Options{Addr: sentinel})
	defer c.Close()
	wait(t, func() bool { return c.Ping(t.Context()).Err() == nil })
	store := openRedis(t, confirm.RedisOptions{Addresses: []string{sentinel}, Master: "main"})
	token, err := store.Mint(t.Context(), "appr_1", "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if g, err := store.Take(t.Context(), token, "a"); err != nil || g.ApprovalID != "appr_1" {
		t.Errorf("%v, %v", g, err)
	}
}

func TestThePasswordComesFromAFile(t *testing.T) {
	s := startRedis(t, "", "", "--requirepass", "first")
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("wrong\n")
	o := confirm.RedisOptions{Addresses: []string{s.address}, PasswordFile: file}
	if _, err := confirm.OpenRedis(t.Context(), o); err == nil || strings.Contains(err.Error(), "wrong\n") {
		t.Errorf("with a wrong password: %v", err)
	}
	write("first\n")
	openRedis(t, o)
	o.PasswordFile += ".missing"
	if _, err := confirm.OpenRedis(t.Context(), o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
}

func TestTheAddressOfRedisIsRead(t *testing.T) {
	for address, want := range map[string]confirm.RedisOptions{
		"localhost:6379":           {Addresses: []string{"localhost:6379"}},
		"redis://ann@h:1/3":        {Addresses: []string{"h:1"}, DB: 3, Username: "ann"},
		"rediss://h:1":             {Addresses: []string{"h:1"}, TLS: true},
		"unix:///run/redis/r.sock": {Addresses: []string{"/run/redis/r.sock"}},
	} {
		got, err := confirm.ParseRedis(address)
		if err != nil || !slices.Equal(got.Addresses, want.Addresses) || got.DB != want.DB || got.Username != want.Username || got.TLS != want.TLS {
			t.Errorf("%s: %+v, %v", address, got, err)
		}
	}
	for _, address := range []string{"", "redis://u:hunter2@h:1", "http://h", "redis://h:1/x:hunter2"} {
		if _, err := confirm.ParseRedis(address); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func FuzzWellFormed(f *testing.F) {
	f.Add("cyt_")
	f.Add("cyt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, token string) {
		if !confirm.WellFormed(token) {
			return
		}
		if len(token) != 47 || strings.ContainsAny(token, "\r\n {}*>.") {
			t.Errorf("%q", token)
		}
	})
}
