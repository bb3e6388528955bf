package datetime

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for machines without zone data, such as images with only the program
)

var offset = regexp.MustCompile(`(?i)^(?:UTC|GMT)([+-])(\d{1,2})(?::(\d{2}))?$`)

// zone returns the time zone of a name or an offset.
func zone(name string) (*time.Location, error) {
	if upper := strings.ToUpper(name); upper == "UTC" || upper == "GMT" {
		return time.UTC, nil
	}
	if m := offset.FindStringSubmatch(name); m != nil {
		hours, _ := strconv.Atoi(m[2])
		minutes, _ := strconv.Atoi(m[3])
		if hours > 23 || minutes > 59 {
			return nil, fmt.Errorf("the offset %s is out of range; the hours go to 23 and the minutes to 59", name)
		}
		seconds := hours*3600 + minutes*60
		if m[1] == "-" {
			seconds = -seconds
		}
		return time.FixedZone("", seconds), nil
	}
	const maxName = 64
	if name == "" || name == "Local" || len(name) > maxName {
		return nil, unknown(name)
	}
	l, err := time.LoadLocation(name)
	if err != nil {
		return nil, unknown(name)
	}
	return l, nil
}

func unknown(name string) error {
	return fmt.Errorf("%.64q is not a time zone; use a name such as Europe/Paris, or an offset such as UTC+5:30", name)
}

// date returns the instant at which the clocks of a zone show the date and time. If they show it
// twice or skip it, the offset before the change is used. The result is in a zone with that
// offset, so that it keeps the wall-clock time.
func date(year int, month time.Month, day, hour, minute int, l *time.Location) time.Time {
	wall := time.Date(year, month, day, hour, minute, 0, 0, time.UTC)
	// No offset reaches a day, so the instant is less than a day away from wall.
	earlier := wall.Add(-24 * time.Hour).In(l)
	_, seconds := earlier.Zone()
	for {
		_, change := earlier.ZoneBounds()
		if change.IsZero() || change.After(wall.Add(24*time.Hour)) {
			break
		}
		_, after := change.Zone()
		if wall.Before(change.Add(time.Duration(max(seconds, after)) * time.Second)) {
			break
		}
		earlier, seconds = change, after
	}
	return wall.Add(-time.Duration(seconds) * time.Second).In(time.FixedZone("", seconds))
}

// iso writes a time as Python's isoformat does.
func iso(t time.Time) string {
	if _, seconds := t.Zone(); seconds%60 != 0 {
		return t.Format("2006-01-02T15:04:05-07:00:00")
	}
	return t.Format("2006-01-02T15:04:05-07:00")
}
