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
	"github.com/callyard/callyard/internal/kit/polltest"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/bus/porttest"
	"github.com/callyard/callyard/pkg/schema"
)

func TestRedisGateSatisfiesTheTokenContract(t *testing.T) {
	s, l := confirmtest.StartRedis(t, "", ""), openLedger(t, bustest.Start(t))
	confirmtest.Run(t, func(t *testing.T, now func() time.Time) confirmtest.Store { return newTokenStore(t, l, s.Gate(t, now)) })
}

func TestLedgerAloneSatisfiesTheTokenContract(t *testing.T) {
	l := openLedger(t, bustest.Start(t))
	confirmtest.Run(t, func(t *testing.T, _ func() time.Time) confirmtest.Store { return newTokenStore(t, l, nil) })
}

func TestRedisClusterWorksAsGate(t *testing.T) {
	// A single node that holds all slots responds like a Cluster.
	address := porttest.Address(t)
	s := confirmtest.StartRedis(t, "", address, "--cluster-enabled", "yes")
	if err := s.Client.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the cluster works", func() bool {
		info, err := s.Client.ClusterInfo(t.Context()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	})
	l := openLedger(t, bustest.Start(t))
	h := newTokenStore(t, l, openGate(t, confirm.RedisOptions{Addresses: []string{address}, Cluster: true}))
	for range 20 { // spread over many slots
		if err := spend(t, h); err != nil {
			t.Error(err)
		}
	}
}

func TestOnlyTheHashOfATokenIsStored(t *testing.T) {
	s, l := confirmtest.StartRedis(t, "", ""), openLedger(t, bustest.Start(t))
	a, token := newTokenStore(t, l, s.Gate(t, nil)).Hold(t, time.Now(), time.Minute)
	keys, err := s.Client.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 1 || !strings.Contains(keys[0], "{"+confirm.Hash(token)+"}") {
		t.Fatalf("keys %v, %v", keys, err)
	}
	secret := token[len(token)-43:]
	fields, err := s.Client.HGetAll(t.Context(), keys[0]).Result()
	if err != nil || strings.Contains(fmt.Sprint(keys, fields), secret) {
		t.Errorf("the token itself is in Redis: %v, %v", fields, err)
	}
	if ttl, err := s.Client.TTL(t.Context(), keys[0]).Result(); err != nil || ttl < 24*time.Hour || ttl > 25*time.Hour {
		t.Errorf("kept for %s, %v", ttl, err)
	}
	stored, _, err := l.Get(t.Context(), schema.AllTenants(), a.ID)
	if err != nil || stored.TokenHash != confirm.Hash(token) || strings.Contains(fmt.Sprintf("%+v", stored), secret) {
		t.Errorf("in the ledger: %+v, %v", stored, err)
	}
}

func TestNoTokenIsSpentWhileRedisIsDown(t *testing.T) {
	s, l := confirmtest.StartRedis(t, "", ""), openLedger(t, bustest.Start(t))
	h := newTokenStore(t, l, s.Gate(t, nil))
	a, token := h.Hold(t, time.Now(), time.Minute)
	s.Kill()
	if _, err := h.Spend(t.Context(), token, "a", time.Now()); !errors.Is(err, confirm.ErrDown) {
		t.Errorf("spending: %v", err)
	}
	if got, err := l.Current(t.Context(), schema.AllTenants(), a.ID); err != nil || got.State != ledger.Pending || got.Spent != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := h.Tokens.Mint(t.Context(), "appr_1", time.Minute); !errors.Is(err, confirm.ErrDown) {
		t.Errorf("minting: %v", err)
	}
	if _, err := confirm.OpenRedis(t.Context(), confirm.RedisOptions{Addresses: []string{s.Address}}); err == nil || !strings.Contains(err.Error(), s.Address) {
		t.Errorf("opening: %v", err)
	}
	confirmtest.StartRedis(t, filepath.Dir(s.Address), "")
	var lost *confirm.LostError
	if _, err := h.Spend(t.Context(), token, "a", time.Now()); !errors.As(err, &lost) || lost.Approval.ID != a.ID {
		t.Errorf("with a server that came back empty: %v", err)
	}
}

// If the policy changes, an approval starts again with a deadline of its own.
func TestTokenIsValidUntilTheDeadlineOfItsApproval(t *testing.T) {
	s, l := confirmtest.StartRedis(t, "", ""), openLedger(t, bustest.Start(t))
	now := time.Now()
	h := newTokenStore(t, l, s.Gate(t, func() time.Time { return now }))
	a, token := h.Hold(t, now, time.Minute)
	if _, err := l.Change(t.Context(), schema.DefaultTenant, a.ID, func(a *ledger.Approval) error {
		a.Restart(ledger.Restart{At: now.UTC(), Level: a.Binding.Level, PolicyVersion: "2", Reason: "The policy has changed."}, a.Rule, a.Reasons, a.Expires.Add(time.Hour))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(30 * time.Minute)
	if _, err := h.Spend(t.Context(), token, "a", now); err != nil {
		t.Errorf("before the deadline: %v", err)
	}
	_, token = h.Hold(t, now, time.Minute)
	now = now.Add(2 * time.Minute)
	if _, err := h.Spend(t.Context(), token, "a", now); !errors.As(err, new(*confirm.ExpiredError)) {
		t.Errorf("after the deadline: %v", err)
	}
}

func TestTokenCanBeSpentAfterAFailedLedgerWrite(t *testing.T) {
	s, l := confirmtest.StartRedis(t, "", ""), openLedger(t, bustest.Start(t))
	h := newTokenStore(t, l, s.Gate(t, nil))
	for _, attempt := range []string{"mine", "another"} {
		_, token := h.Hold(t, time.Now(), time.Minute)
		no := errors.New("the ledger was away")
		mark := ledger.TokenUse{Attempt: "mine", At: time.Now().UTC()}
		nobodyMinds := func(*ledger.Approval) error { return nil }
		if _, err := h.Tokens.Spend(t.Context(), schema.DefaultTenant, token, mark, nobodyMinds, func(*ledger.Approval) error { return no }); !errors.Is(err, no) {
			t.Fatal(err)
		}
		if _, err := h.Spend(t.Context(), token, attempt, time.Now()); err != nil {
			t.Errorf("attempt %q: %v", attempt, err)
		}
		var spent *confirm.SpentError
		for _, again := range []string{"mine", "another"} {
			if _, err := h.Spend(t.Context(), token, again, time.Now()); !errors.As(err, &spent) {
				t.Errorf("attempt %q, when it is spent: %v", again, err)
			}
		}
	}
}

func TestTokenSurvivesNATSOutageDuringSpend(t *testing.T) {
	server := bustest.Start(t)
	s, l := confirmtest.StartRedis(t, "", ""), openLedger(t, server)
	h := newTokenStore(t, l, s.Gate(t, nil))
	a, token := h.Hold(t, time.Now(), time.Minute)
	mark := ledger.TokenUse{Attempt: "first", At: time.Now().UTC(), By: "ann"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := h.Tokens.Spend(ctx, schema.DefaultTenant, token, mark, func(*ledger.Approval) error { return nil }, func(a *ledger.Approval) error {
		server.Stop() // Redis has released the token, but the ledger was not asked yet
		return confirmtest.Running("first")(a)
	})
	if schema.KindOf(err) != schema.KindUnavailable {
		t.Fatalf("while NATS is down: %v", err)
	}
	server.Again(t)
	polltest.Until(t, "the approval is pending", func() bool {
		got, err := l.Current(t.Context(), schema.AllTenants(), a.ID)
		return err == nil && got.State == ledger.Pending && got.Spent == nil
	})
	if got, err := h.Spend(t.Context(), token, "second", time.Now()); err != nil || got.Spent.Attempt != "second" {
		t.Errorf("with NATS back: %v", err)
	}
}

func TestSentinelProvidesTheRedisAddress(t *testing.T) {
	at, sentinel := porttest.Address(t), porttest.Address(t)
	confirmtest.StartRedis(t, "", at)
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
	polltest.Until(t, "the sentinel knows the main server", func() bool { return c.Ping(t.Context()).Err() == nil })
	gate := openGate(t, confirm.RedisOptions{Addresses: []string{sentinel}, Master: "main"})
	if err := spend(t, newTokenStore(t, openLedger(t, bustest.Start(t)), gate)); err != nil {
		t.Error(err)
	}
}

func TestThePasswordComesFromAFile(t *testing.T) {
	s := confirmtest.StartRedis(t, "", "", "--requirepass", "first")
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("wrong\n")
	o := confirm.RedisOptions{Addresses: []string{s.Address}, PasswordFile: file}
	if _, err := confirm.OpenRedis(t.Context(), o); err == nil || strings.Contains(err.Error(), "wrong\n") {
		t.Errorf("with a wrong password: %v", err)
	}
	write("first\n")
	openGate(t, o).Close()
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

func FuzzApprovalOfToken(f *testing.F) {
	f.Add("cyt_")
	f.Add("cyt_appr_1_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Add("cyt_appr_06gzwg9m6xv52e7cadjz96gfp8_0123456789abcdefghijklmnopqrstuvwxyz-_ABCDE")
	f.Fuzz(func(t *testing.T, token string) {
		id := confirm.ApprovalOf(token)
		if id == "" {
			return
		}
		if !strings.HasPrefix(token, "cyt_"+string(id)+"_") || len(token) != len("cyt_")+len(id)+1+43 || strings.ContainsAny(token, "\r\n {}*>.") {
			t.Errorf("%q names %q", token, id)
		}
	})
}
