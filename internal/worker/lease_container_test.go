package worker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func TestTheReaperRemovesTheDirectoriesOfAKilledWorker(t *testing.T) {
	base := filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(filepath.Join(base, "episode-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"", "{}", `{"owner":"w1","host":"unix:///x"}`, `{"episodes":"run"}`, "[" + base + "]"} {
		SweepEpisodes(other)
	}
	if _, err := os.Stat(base); err != nil {
		t.Fatalf("a note of something else removed it: %v", err)
	}
	SweepEpisodes((&leases{set: Leases{Base: base}}).note())
	if _, err := os.Stat(base); !os.IsNotExist(err) {
		t.Errorf("it is there: %v", err)
	}
}

// A call that the policy requires to run in a container does not run in the process of an episode.
func TestACallThatNeedsAContainerIsDeniedInAProcessOutsideOne(t *testing.T) {
	l := &leases{served: &Served{}}
	if e := l.refuses(&job{}, &lease{}, &verdict{sandboxed: true}); e == nil || e.Kind != schema.KindForbidden {
		t.Errorf("it is judged %v", e)
	}
	if e := l.refuses(&job{}, &lease{}, &verdict{}); e != nil {
		t.Errorf("any other call is judged %v", e)
	}
}
