package watchers

import "testing"

func TestOnlyWatchersOfTheIDOrOfAllAreCalled(t *testing.T) {
	var s Set[int]
	heard := map[string]int{}
	add := func(id, name string) func() { return s.Add(id, func(n int) { heard[name] += n }) }
	tell := func(id string) {
		for _, f := range s.Of(id) {
			f(1)
		}
	}
	stopAll, stopA := add("", "all"), add("a", "a")
	add("b", "b")
	tell("a")
	tell("c")
	if heard["all"] != 2 || heard["a"] != 1 || heard["b"] != 0 {
		t.Errorf("heard %v", heard)
	}
	stopA()
	stopAll()
	stopAll()
	tell("a")
	if heard["all"] != 2 || heard["a"] != 1 || len(s.by) != 1 {
		t.Errorf("after the end %v was heard, %d are left", heard, len(s.by))
	}
}
