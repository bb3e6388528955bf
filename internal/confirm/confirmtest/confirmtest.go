// Package confirmtest is the suite that every store of confirmation tokens
// passes. It must not be used outside tests.
package confirmtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/confirm"
)

// Clock is a clock that stands still until it is moved. It is safe for
// concurrent use.
type Clock struct{ ahead atomic.Int64 }

// Now is the clock's time.
func (c *Clock) Now() time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(c.ahead.Load()))
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) { c.ahead.Add(int64(d)) }

// Run holds a store to the promises of [confirm.Store]. open returns an empty
// one that tells the time by the clock and is closed by whoever opened it.
func Run(t *testing.T, open func(t *testing.T, now func() time.Time) confirm.Store) {
	t.Run("ATokenIsTakenOnceByManyRacers", func(t *testing.T) { race(t, open(t, new(Clock).Now), 200, 100) })
	t.Run("ATokenGivesWhatItWasMintedFor", func(t *testing.T) { gives(t, open(t, new(Clock).Now)) })
	t.Run("TheSameAttemptGetsTheSameAnswer", func(t *testing.T) { clock := new(Clock); again(t, open(t, clock.Now), clock) })
	t.Run("ManyTriesOfOneAttemptAreAllGranted", func(t *testing.T) { retries(t, open(t, new(Clock).Now)) })
	t.Run("ATokenExpires", func(t *testing.T) { clock := new(Clock); expiry(t, open(t, clock.Now), clock) })
	t.Run("WhatWasNotMintedIsUnknown", func(t *testing.T) { unknown(t, open(t, new(Clock).Now)) })
	t.Run("ACallerThatIsGoneIsToldThatTheStoreIsDown", func(t *testing.T) { gone(t, open(t, new(Clock).Now)) })
}

func mint(t *testing.T, s confirm.Store, approval string, ttl time.Duration) string {
	t.Helper()
	token, err := s.Mint(t.Context(), approval, "sha256:"+approval, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func race(t *testing.T, s confirm.Store, tokens, racers int) {
	for i := range tokens {
		approval := fmt.Sprintf("appr_%d", i)
		token := mint(t, s, approval, time.Minute)
		var won, spent atomic.Int32
		var ready, all sync.WaitGroup
		ready.Add(racers)
		for r := range racers {
			all.Go(func() {
				ready.Done()
				ready.Wait()
				g, err := s.Take(t.Context(), token, fmt.Sprint("attempt ", r))
				var already *confirm.SpentError
				switch {
				case err == nil && g.ApprovalID == approval:
					won.Add(1)
				case errors.As(err, &already) && already.ApprovalID == approval:
					spent.Add(1)
				default:
					t.Errorf("token %d: %v, %v", i, g, err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || int(spent.Load()) != racers-1 {
			t.Fatalf("token %d: %d took it, %d found it spent, of %d", i, won.Load(), spent.Load(), racers)
		}
	}
}

func gives(t *testing.T, s confirm.Store) {
	one, two := mint(t, s, "appr_1", time.Minute), mint(t, s, "appr_2", time.Minute)
	if one == two || !confirm.WellFormed(one) || !strings.HasPrefix(one, "cyt_") {
		t.Errorf("tokens %q and %q", one, two)
	}
	want := confirm.Grant{ApprovalID: "appr_1", Binding: "sha256:appr_1"}
	for range 3 { // looking spends nothing
		if g, err := s.Find(t.Context(), one); err != nil || g != want {
			t.Errorf("found %v, %v", g, err)
		}
	}
	if g, err := s.Take(t.Context(), one, "a"); err != nil || g != want {
		t.Errorf("took %v, %v", g, err)
	}
	var spent *confirm.SpentError
	if _, err := s.Find(t.Context(), one); !errors.As(err, &spent) || spent.ApprovalID != "appr_1" {
		t.Errorf("found a spent one: %v", err)
	}
	if g, err := s.Find(t.Context(), two); err != nil || g.ApprovalID != "appr_2" {
		t.Errorf("the other token: %v, %v", g, err)
	}
	for name, err := range map[string]error{
		"no time":     second(s.Mint(t.Context(), "appr_1", "", 0)),
		"no approval": second(s.Mint(t.Context(), "", "", time.Minute)),
		"no attempt":  second(s.Take(t.Context(), two, "")),
	} {
		if err == nil || errors.Is(err, confirm.ErrDown) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func again(t *testing.T, s confirm.Store, clock *Clock) {
	token := mint(t, s, "appr_1", time.Minute)
	for range 3 {
		if g, err := s.Take(t.Context(), token, "mine"); err != nil || g.ApprovalID != "appr_1" || g.Binding != "sha256:appr_1" {
			t.Fatalf("%v, %v", g, err)
		}
		var spent *confirm.SpentError
		if _, err := s.Take(t.Context(), token, "yours"); !errors.As(err, &spent) || spent.ApprovalID != "appr_1" {
			t.Fatalf("another attempt: %v", err)
		}
		clock.Advance(time.Hour) // it was in time when it asked first
	}
}

func retries(t *testing.T, s confirm.Store) {
	token := mint(t, s, "appr_1", time.Minute)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if g, err := s.Take(t.Context(), token, "mine"); err != nil || g.ApprovalID != "appr_1" {
				t.Errorf("%v, %v", g, err)
			}
		})
	}
	all.Wait()
}

func expiry(t *testing.T, s confirm.Store, clock *Clock) {
	early, late := mint(t, s, "appr_1", time.Minute), mint(t, s, "appr_2", time.Minute)
	clock.Advance(time.Minute - time.Millisecond)
	if _, err := s.Take(t.Context(), early, "a"); err != nil {
		t.Errorf("just in time: %v", err)
	}
	clock.Advance(time.Millisecond)
	for range 2 {
		var expired *confirm.ExpiredError
		if _, err := s.Take(t.Context(), late, "a"); !errors.As(err, &expired) || expired.ApprovalID != "appr_2" {
			t.Errorf("just too late: %v", err)
		}
		if _, err := s.Find(t.Context(), late); !errors.As(err, &expired) {
			t.Errorf("found: %v", err)
		}
	}
}

func unknown(t *testing.T, s confirm.Store) {
	token := mint(t, s, "appr_1", time.Minute)
	flipped := []byte(token)
	if flipped[10]++; flipped[10] > 'z' || flipped[10] == '[' || flipped[10] == ':' {
		flipped[10] = 'b'
	}
	for _, other := range []string{"", "cyt_", string(flipped), token + "A", token[:len(token)-1], strings.ToUpper(token), " " + token, token + "\n", confirm.Hash(token), "cyt_{}*>.$"} {
		if _, err := s.Take(t.Context(), other, "a"); !errors.Is(err, confirm.ErrUnknown) {
			t.Errorf("%q: %v", other, err)
		}
		if _, err := s.Find(t.Context(), other); !errors.Is(err, confirm.ErrUnknown) {
			t.Errorf("%q: %v", other, err)
		}
	}
	if _, err := s.Take(t.Context(), token, "a"); err != nil {
		t.Errorf("the token itself: %v", err)
	}
}

func gone(t *testing.T, s confirm.Store) {
	token := mint(t, s, "appr_1", time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"take": second(s.Take(ctx, token, "a")), "find": second(s.Find(ctx, token)), "mint": second(s.Mint(ctx, "appr_1", "", time.Minute)),
	} {
		if !errors.Is(err, confirm.ErrDown) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
