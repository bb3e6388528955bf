package lifecycle_test

import (
	"slices"
	"testing"

	"github.com/callyard/callyard/internal/lifecycle"
)

func TestClosersCloseOnceInReverseOrder(t *testing.T) {
	var opened lifecycle.Closers
	var closed []int
	for i := range 3 {
		opened.Add(func() { closed = append(closed, i) })
	}
	opened.Close()
	opened.Close()
	if !slices.Equal(closed, []int{2, 1, 0}) {
		t.Errorf("closed in the order %v", closed)
	}
}
