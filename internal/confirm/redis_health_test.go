package confirm_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/confirm"
	"github.com/callyard/callyard/internal/confirm/confirmtest"
	"github.com/callyard/callyard/internal/kit/logtest"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// A Redis that is full, is a replica or requires a password still answers a ping, so that only callers
// would notice.
func TestUnusableRedisIsReportedOnce(t *testing.T) {
	s, l := confirmtest.StartRedis(t, "", ""), openLedger(t, bustest.Start(t))
	set := func(key, value string) {
		t.Helper()
		if err := s.Client.ConfigSet(t.Context(), key, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for name, fault := range map[string]struct{ key, bad, good, want string }{
		"full":            {"maxmemory", "1", "0", "OOM"},
		"without replica": {"min-replicas-to-write", "1", "0", "NOREPLICAS"},
	} {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			gate := openGate(t, confirm.RedisOptions{Addresses: []string{s.Address}, Log: slog.New(slog.NewTextHandler(&log, nil))})
			h := newTokenStore(t, l, gate)
			_, token := h.Hold(t, time.Now(), time.Minute)
			gate.Probe(t.Context())
			if !h.Tokens.Up() || log.String() != "" {
				t.Fatalf("of a good one it is said\n%s", log.String())
			}
			set(fault.key, fault.bad)
			gone, giveUp := context.WithCancel(t.Context())
			giveUp()
			if _, err := h.Tokens.Mint(gone, "appr_1", time.Minute); err == nil || !h.Tokens.Up() {
				t.Error("a caller that gave up says something of Redis")
			}
			gate.Probe(t.Context())
			if h.Tokens.Up() {
				t.Error("a probe does not notice it")
			}
			if _, err := h.Spend(t.Context(), token, "a", time.Now()); !errors.Is(err, confirm.ErrDown) {
				t.Error(err)
			}
			if text := log.String(); strings.Count(text, "does not take confirmation tokens") != 1 || !strings.Contains(text, fault.want) {
				t.Errorf("it logged\n%s", text)
			}
			set(fault.key, fault.good)
			gate.Probe(t.Context())
			if text := log.String(); !h.Tokens.Up() || strings.Count(text, "takes confirmation tokens again") != 1 {
				t.Errorf("after the repair it logged\n%s", text)
			}
			if _, err := h.Spend(t.Context(), token, "a", time.Now()); err != nil {
				t.Error(err)
			}
			if keys, err := s.Client.Keys(t.Context(), "*probe*").Result(); err != nil || len(keys) != 0 {
				t.Errorf("probes left %v, %v", keys, err)
			}
		})
	}
}

func TestMintingUpdatesRedisStatus(t *testing.T) {
	s, l := confirmtest.StartRedis(t, "", ""), openLedger(t, bustest.Start(t))
	h := newTokenStore(t, l, s.Gate(t, nil))
	s.Kill()
	if _, err := h.Tokens.Mint(t.Context(), "appr_1", time.Minute); !errors.Is(err, confirm.ErrDown) || h.Tokens.Up() {
		t.Errorf("up: %t, %v", h.Tokens.Up(), err)
	}
	confirmtest.StartRedis(t, strings.TrimSuffix(s.Address, "/s"), "")
	if _, err := h.Tokens.Mint(t.Context(), "appr_1", time.Minute); err != nil || !h.Tokens.Up() {
		t.Errorf("up: %t, %v", h.Tokens.Up(), err)
	}
}

// Redis answers again after such a loss, so that nothing else shows it.
func TestTokensThatRedisLostAreReportedOnce(t *testing.T) {
	s, l := confirmtest.StartRedis(t, "", ""), openLedger(t, bustest.Start(t))
	var log logtest.Log
	gate := openGate(t, confirm.RedisOptions{Addresses: []string{s.Address}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	h := newTokenStore(t, l, gate)
	before, _ := h.Hold(t, time.Now(), time.Minute) // by a process with another Redis, for example
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	byID, _ := h.Hold(t, time.Now(), time.Minute)
	h.Tokens.Watch(func(a *ledger.Approval) bool { return a.CallID != byID.CallID })
	var tokens []string
	for range 3 {
		_, token := h.Hold(t, time.Now(), time.Minute)
		tokens = append(tokens, token)
	}
	gate.Probe(t.Context())
	if _, err := h.Spend(t.Context(), tokens[0], "a", time.Now()); err != nil {
		t.Fatal(err)
	}
	gate.Probe(t.Context())
	if text := log.String(); text != "" {
		t.Fatalf("without a loss it logged\n%s", text)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		gate.Probe(t.Context())
	}
	text := log.String()
	if strings.Count(text, "lost the confirmation tokens") != 1 || !strings.Contains(text, "calls=2") || strings.Contains(text, string(before.CallID)) {
		t.Errorf("two of the held calls lost their token, and it logged\n%s", text)
	}
}
