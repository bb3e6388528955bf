package agent

import (
	"testing"

	"github.com/callyard/callyard/internal/agent/model"
)

func TestCachedTokensWithoutPriceCostTheInputPrice(t *testing.T) {
	zero := 0.0
	for _, c := range []struct {
		prices Prices
		want   float64
	}{
		{Prices{Input: 4, Output: 10}, 4 + 5},
		{Prices{Input: 4, Output: 10, Cached: new(1.0)}, 2 + 0.5 + 5},
		{Prices{Input: 4, Output: 10, Cached: &zero}, 2 + 5},
	} {
		var s usage
		s.begin(Limits{Prices: &c.prices})
		s.usage = model.Usage{Input: 1_000_000, Cached: 500_000, Output: 500_000}
		if got := s.cost(); *got != c.want {
			t.Errorf("%+v: %v, want %v", c.prices, *got, c.want)
		}
	}
	if p := (Prices{Input: 1, Output: 1, Cached: new(-1.0)}); !p.Negative() {
		t.Error("a negative price is not seen")
	}
}
