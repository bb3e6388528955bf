package risk

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestAPolicyIsReadFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if _, err := ReadFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	for source, good := range map[string]bool{"rules: [{deny: no}]": true, "rules: [{level: 9}]": false} {
		if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := ReadFile(path)
		var faults *Faults
		if good && (err != nil || len(p.Rules()) != 1) || !good && !errors.As(err, &faults) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

func TestPolicyIsReplacedWhileCallsAreAssessed(t *testing.T) {
	h := NewHolder(nil)
	if h.Current().Version() != "default" {
		t.Fatal("a new holder has the default")
	}
	replace := func(source string) {
		p, err := Parse([]byte(source), "policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		h.Replace(p)
	}
	replace("rules: [{name: a, deny: no}]")
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
	replace("rules: [{name: b, level: 2}]")
	replace("rules: [{name: a, deny: no}]")
	wg.Wait()
}
