package risk

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func write(t *testing.T, path, source string, modified time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, modified, modified); err != nil {
		t.Fatal(err)
	}
}

func TestAFaultyFileLeavesTheOldPolicyInForce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	now := time.Unix(1_800_000_000, 0)
	h := NewHolder(nil)
	if h.Current().Version() != "default" || h.Changed() || h.Reload() != nil {
		t.Fatal("a new holder has the default")
	}
	if err := h.Load(path); err == nil || !errors.Is(err, os.ErrNotExist) || h.Current().Version() != "default" {
		t.Fatal(err)
	}
	write(t, path, "rules: [{deny: no}]", now)
	if err := h.Load(path); err != nil {
		t.Fatal(err)
	}
	first := h.Current()
	if len(first.Rules()) != 1 || h.Changed() {
		t.Fatalf("%v, changed %v", first.Rules(), h.Changed())
	}
	write(t, path, "rules: [{level: 9}]", now.Add(time.Second))
	if !h.Changed() {
		t.Error("the change was not seen")
	}
	var faults *Faults
	if err := h.Reload(); !errors.As(err, &faults) {
		t.Errorf("%v", err)
	}
	if h.Current() != first || h.Changed() {
		t.Errorf("the policy changed %v, the file is looked at again %v", h.Current() != first, h.Changed())
	}
	write(t, path, "rules: [{deny: no}, {level: 2}]", now.Add(time.Second))
	if !h.Changed() {
		t.Error("a change of the size alone was not seen")
	}
	if err := h.Reload(); err != nil || len(h.Current().Rules()) != 2 {
		t.Errorf("%v %v", err, h.Current().Rules())
	}
	second := h.Current()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if h.Changed() {
		t.Error("a file that is being replaced is no change yet")
	}
	if err := h.Reload(); err == nil || h.Current() != second {
		t.Errorf("%v, changed %v", err, h.Current() != second)
	}
	write(t, path, "rules: [{deny: no}, {level: 2}]", now.Add(time.Minute))
	if err := h.Reload(); err != nil || h.Current() != second {
		t.Errorf("%v: the same text is the same policy", err)
	}
}

func TestAPolicyIsReplacedUnderCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "rules: [{name: a, deny: no}]", time.Unix(1, 0))
	h := NewHolder(nil)
	if err := h.Load(path); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if a := h.Current().Assess(&Input{Server: "s", Tool: "t"}); a.Rule != "a" && a.Rule != "b" {
					t.Errorf("%+v", a)
				}
			}
		})
	}
	for i, source := range []string{"rules: [{name: b, level: 2}]", "rules: [{name: a, deny: no}]", "rules: ["} {
		write(t, path, source, time.Unix(int64(i+2), 0))
		if err := h.Reload(); (err != nil) != (i == 2) {
			t.Error(err)
		}
	}
	wg.Wait()
}
