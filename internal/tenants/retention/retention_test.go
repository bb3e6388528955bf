package retention

import (
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

func TestARetentionOnlyShortens(t *testing.T) {
	p := Periods{"red": 2 * time.Hour, schema.DefaultTenant: time.Hour}
	for _, c := range []struct {
		of         schema.TenantID
		keep, want time.Duration
	}{
		{"red", 3 * time.Hour, 2 * time.Hour},
		{"red", 2 * time.Hour, 0},
		{"red", time.Hour, 0},
		{"red", 0, 2 * time.Hour},
		{"", 72 * time.Hour, time.Hour},
		{schema.DefaultTenant, 72 * time.Hour, time.Hour},
		{"blue", 72 * time.Hour, 0},
		{"blue", 0, 0},
	} {
		if got := p.Within(c.of, c.keep); got != c.want {
			t.Errorf("%q of %s: %s, want %s", c.of, c.keep, got, c.want)
		}
	}
	if got := Periods(nil).Within("red", 0); got != 0 {
		t.Errorf("without the section: %s", got)
	}
}

func TestOver(t *testing.T) {
	p, now := Periods{"red": time.Hour}, time.Unix(1_000_000, 0)
	for _, c := range []struct {
		of    schema.TenantID
		since time.Time
		want  bool
	}{
		{"red", now.Add(-time.Hour), true},
		{"red", now.Add(-time.Hour + 1), false},
		{"red", now.Add(time.Hour), false},
		{"red", time.Time{}, false}, // it has not ended
		{"", now.Add(-1000 * time.Hour), false},
		{"blue", now.Add(-1000 * time.Hour), false},
	} {
		if got := p.Over(c.of, c.since, now); got != c.want {
			t.Errorf("%q since %s: %t", c.of, c.since, got)
		}
	}
}
