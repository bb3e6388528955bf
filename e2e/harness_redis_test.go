package e2e

import (
	"errors"
	"testing"

	"github.com/callyard/callyard/internal/confirm/confirmtest"
)

// follows waits until the replica has the current data of its main server.
func follows(t testing.TB, main, replica *confirmtest.Redis) {
	t.Helper()
	mark := "mark of a test"
	if err := main.Client.Set(t.Context(), mark, 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "the replica follows", func() error {
		n, err := replica.Client.Exists(t.Context(), mark).Result()
		if err == nil && n == 0 {
			err = errors.New("it has not seen the last write")
		}
		return err
	})
}

// cut stops replication like a partition: later changes of the main server do not reach
// the replica.
func cut(t testing.TB, main, replica *confirmtest.Redis) {
	t.Helper()
	ctx := t.Context()
	for _, err := range []error{
		// A replica that cannot sign in does not follow.
		replica.Client.ConfigSet(ctx, "masterauth", "wrong").Err(),
		main.Client.Do(ctx, "CLIENT", "KILL", "TYPE", "replica").Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, soon, "the link is cut", func() error {
		n, err := main.Client.Do(ctx, "WAIT", 1, 1).Int()
		if err == nil && n != 0 {
			err = errors.New("a replica answers")
		}
		return err
	})
}

// validTokens returns the number of tokens that Redis still considers valid.
func validTokens(t testing.TB, s *confirmtest.Redis) (n int) {
	t.Helper()
	ctx := t.Context()
	tokens, err := s.Client.Keys(ctx, "callyard:token:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		spent, err := s.Client.HExists(ctx, token, "attempt").Result()
		if err != nil {
			t.Fatal(err)
		}
		if !spent {
			n++
		}
	}
	return n
}
