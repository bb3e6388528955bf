package config

import (
	"math"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

func TestDurationsAreReadWithTheirUnit(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "5s": 5 * time.Second, "250ms": 250 * time.Millisecond, "1h30m": 90 * time.Minute, "7d": 7 * day, "1d12h": 36 * time.Hour, "1.5s": 1500 * time.Millisecond,
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || time.Duration(d) != want {
			t.Errorf("%q: got %v, %v", text, time.Duration(d), err)
		}
		var again Duration
		if err := again.UnmarshalText([]byte(d.String())); err != nil || again != d {
			t.Errorf("%q is written as %q, which is read as %v, %v", text, d, again, err)
		}
	}
	for _, text := range []string{"", "5", "s", "-5s", "5 s", "d", "1.5d", "-1d", "1d-1h", "999999999d", "106751d24h", "5x", "1h1d"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: read as %v", text, time.Duration(d))
		}
	}
}

func TestSizesAreReadWithTheirUnit(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "512B": 512, "64KiB": 64 << 10, "1MiB": 1 << 20, "10MB": 1e7, "2 GiB": 2 << 30, "3kB": 3000, "3KB": 3000, "1TiB": 1 << 40, "9223372036854775807B": math.MaxInt64,
	} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q: got %d, %v", text, s, err)
		}
		var again Size
		if err := again.UnmarshalText([]byte(s.String())); err != nil || again != s {
			t.Errorf("%q is written as %q, which is read as %d, %v", text, s, again, err)
		}
	}
	for _, text := range []string{"", "5", "MiB", "-5B", "1.5MiB", "5mb", "5  B", "5B5", "9223372036854775808B", "9000000TiB", "5iB", "0x5B"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: read as %d", text, s)
		}
	}
}

func TestOnlySimilarNamesAreSuggested(t *testing.T) {
	known := []string{"listen", "max_body", "front_door", "riskLevel", "id"}
	for name, want := range map[string]string{
		"lisen": "listen", "LISTEN": "listen", "lsiten": "listen", "maxBody": "max_body", "max-body": "max_body", "frontdoor": "front_door",
		"risk_level": "riskLevel", "riskLevl": "riskLevel", "something": "", "x": "", "": "", "ie": "id",
	} {
		if got := yamldoc.Nearest(name, known); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
