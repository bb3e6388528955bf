package datetime

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func at(text string) clock {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return func() time.Time { return t }
}

// TestZonesAgreeWithPython compares offsets and wall-clock readings with the output of
// testdata/zones.py.
func TestZonesAgreeWithPython(t *testing.T) {
	f, err := os.Open("../testdata/zones.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Instants []int64
		Zones    map[string][][2]int // offset of the instant; offset of the clock's reading of the instant as if it were UTC
	}
	if err := json.NewDecoder(z).Decode(&golden); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for name, offsets := range golden.Zones {
		l, err := zone(name)
		if err != nil {
			t.Error(err)
			continue
		}
		for i, want := range offsets {
			moment := time.Unix(golden.Instants[i], 0).UTC()
			_, got := moment.In(l).Zone()
			_, wall := date(moment.Year(), moment.Month(), moment.Day(), moment.Hour(), moment.Minute(), l).Zone()
			if got != want[0] || wall != want[1] {
				t.Errorf("%s at %v: offsets %d and %d, want %v", name, moment, got, wall, want)
			}
			compared++
		}
	}
	if compared < 400*50 {
		t.Errorf("only %d offsets are compared", compared)
	}
	t.Logf("%d zones, %d offsets", len(golden.Zones), compared)
}

func TestNowReadsTheClockInTheZone(t *testing.T) {
	c := at("2026-07-01T22:30:45.9Z")
	for zone, want := range map[string]string{
		"":                 "2026-07-01T22:30:45+00:00",
		"utc":              "2026-07-01T22:30:45+00:00",
		"GMT":              "2026-07-01T22:30:45+00:00",
		"Asia/Kathmandu":   "2026-07-02T04:15:45+05:45",
		"America/New_York": "2026-07-01T18:30:45-04:00",
		"UTC+5:30":         "2026-07-02T04:00:45+05:30",
		"gmt-3":            "2026-07-01T19:30:45-03:00",
	} {
		if got, err := c.now(t.Context(), nil, nowArguments{zone}); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", zone, got, err, want)
		}
	}
}

func TestConvertUsesTheDateAndTheOffsetOfTheSource(t *testing.T) {
	for _, c := range []struct{ now, time, source, target, from, to, difference string }{
		{"2026-07-01T22:30:00Z", "9:05", "America/Chicago", "Asia/Kathmandu", "2026-07-01T09:05:00-05:00", "2026-07-01T19:50:00+05:45", "+10.75h"},
		{"2026-07-01T22:30:00Z", "14:30", "Asia/Tokyo", "UTC", "2026-07-02T14:30:00+09:00", "2026-07-02T05:30:00+00:00", "-9.0h"},
		{"2026-07-01T22:30:00Z", "00:00", "UTC+5:30", "GMT-3", "2026-07-02T00:00:00+05:30", "2026-07-01T15:30:00-03:00", "-8.5h"},
		{"2026-07-01T22:30:00Z", "12:00", "UTC", "utc", "2026-07-01T12:00:00+00:00", "2026-07-01T12:00:00+00:00", "+0.0h"},
		// Clocks in New York go from 02:00 to 03:00 on 8 March, and back on 1 November.
		{"2026-03-08T12:00:00Z", "02:30", "America/New_York", "UTC", "2026-03-08T02:30:00-05:00", "2026-03-08T07:30:00+00:00", "+5.0h"},
		{"2026-03-08T12:00:00Z", "03:00", "America/New_York", "UTC", "2026-03-08T03:00:00-04:00", "2026-03-08T07:00:00+00:00", "+4.0h"},
		{"2026-11-01T12:00:00Z", "01:30", "America/New_York", "UTC", "2026-11-01T01:30:00-04:00", "2026-11-01T05:30:00+00:00", "+4.0h"},
		{"2026-11-01T12:00:00Z", "02:00", "America/New_York", "UTC", "2026-11-01T02:00:00-05:00", "2026-11-01T07:00:00+00:00", "+5.0h"},
	} {
		got, err := at(c.now).convert(t.Context(), nil, convertArguments{c.time, c.source, c.target})
		if err != nil || got.SourceTime != c.from || got.TargetTime != c.to || got.Difference != c.difference {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}

func TestInvalidZonesAndTimesAreRefused(t *testing.T) {
	c := at("2026-07-01T22:30:00Z")
	for _, zone := range []string{"Local", "Mars/Phobos", "UTC+24", "UTC+5:60", "GMT+", "../etc/passwd", "/etc/localtime", "america/new_york ", strings.Repeat("x", 1000)} {
		if got, err := c.now(t.Context(), nil, nowArguments{zone}); err == nil {
			t.Errorf("%.40q: %s", zone, got)
		}
	}
	for _, time := range []string{"", "24:00", "9", "9:60", "09:05:00", " 9:05", "9:05 pm", "١٢:٠٠"} {
		if got, err := c.convert(t.Context(), nil, convertArguments{time, "UTC", "UTC"}); err == nil {
			t.Errorf("%q: %v", time, got)
		}
	}
	if _, err := c.convert(t.Context(), nil, convertArguments{"09:00", "UTC", "Nowhere"}); err == nil || !strings.Contains(err.Error(), `"Nowhere" is not a time zone; use a name`) {
		t.Error(err)
	}
}
