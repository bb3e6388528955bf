package validate

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
)

func TestTheCacheCompilesOnceAndDropsTheOldest(t *testing.T) {
	c := NewCache(3)
	raw := json.RawMessage(`{"type":"object"}`)
	first, err := c.Get("d0", raw)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if again, _ := c.Get("d0", raw); again != first {
			t.Fatalf("compiled again after %d others", i)
		}
		if _, err := c.Get(fmt.Sprintf("other%d", i), raw); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.entries) != 3 {
		t.Errorf("holds %d", len(c.entries))
	}
	if again, _ := c.Get("d0", raw); again == first {
		t.Error("the oldest was not dropped")
	}
	if kept, _ := c.Get("other2", nil); kept.plan == nil || len(c.entries) != 3 {
		t.Error("the newest was dropped")
	}
}

func TestUnusableSchemaIsCachedAsAnError(t *testing.T) {
	c := NewCache(0)
	_, err := c.Get("d", json.RawMessage(`{"type":1}`))
	_, again := c.Get("d", json.RawMessage(`{}`))
	if err == nil || again != err {
		t.Errorf("%v, then %v", err, again)
	}
}

func TestConcurrentGetsShareOneSchema(t *testing.T) {
	c := NewCache(2)
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		got = map[string]map[*Schema]bool{"a": {}, "b": {}}
	)
	for i := range 16 {
		digest := "ab"[i%2 : i%2+1]
		wg.Go(func() {
			for range 50 {
				s, err := c.Get(digest, json.RawMessage(`{"type":"object"}`))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				got[digest][s] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(got["a"]) != 1 || len(got["b"]) != 1 {
		t.Errorf("%d and %d schemas for two digests", len(got["a"]), len(got["b"]))
	}
}

func BenchmarkCache(b *testing.B) {
	c := NewCache(0)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Get("sha256:00", nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
