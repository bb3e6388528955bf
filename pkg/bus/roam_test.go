package bus

import (
	"errors"
	"testing"
	"time"
)

func TestPartitionedServerIsLeftButNotTooOften(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	var r reach
	away := errors.New("nobody answers")
	moves := func(after time.Duration, err error) bool { return r.moves(start.Add(after), err) }
	for _, step := range []struct {
		after time.Duration
		err   error
		want  bool
	}{
		{0, nil, false},
		{2 * time.Second, away, false},
		{7 * time.Second, away, false},
		{8 * time.Second, nil, false}, // only a leader election
		{10 * time.Second, away, false},
		{16 * time.Second, away, true},
		{18 * time.Second, away, false}, // the new server gets some time
		{24 * time.Second, away, false}, // and the connection does not move in circles
		{31 * time.Second, away, true},
	} {
		if got := moves(step.after, step.err); got != step.want {
			t.Errorf("after %s, with %v: moves %t", step.after, step.err, got)
		}
	}
}
