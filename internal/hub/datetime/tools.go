package datetime

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/launch/native"
)

type (
	nowArguments struct {
		Zone string `json:"timezone_name,omitempty" jsonschema:"Time zone, such as Asia/Shanghai or UTC+5:30. UTC if left out."`
	}
	convertArguments struct {
		Time   string `json:"time_str" jsonschema:"Time of day on a 24-hour clock, HH:MM. The date is today's in the source time zone."`
		Source string `json:"source_timezone" jsonschema:"Time zone of time_str, such as America/Chicago or GMT-3."`
		Target string `json:"target_timezone" jsonschema:"Time zone to convert to, such as Asia/Shanghai or UTC+5:30."`
	}
	converted struct {
		SourceTime string `json:"source_time" jsonschema:"The time in the source time zone, ISO 8601."`
		TargetTime string `json:"target_time" jsonschema:"The same moment in the target time zone, ISO 8601."`
		Difference string `json:"time_difference" jsonschema:"Hours that the target is ahead of the source, such as +5.75h."`
		Source     string `json:"source_timezone"`
		Target     string `json:"target_timezone"`
	}
)

// clock returns the time.
type clock func() time.Time

// of returns the time for a call: that of its episode, whose clock stands still, otherwise that
// of the machine.
func (c clock) of(call *native.Call) time.Time {
	if call != nil && call.Clock != "" {
		if t, err := time.Parse(time.RFC3339, call.Clock); err == nil {
			return t
		}
	}
	return c()
}

// Tools returns the tools now and convert_timezone. They use the clock now and keep no state.
func Tools(now func() time.Time) []native.Tool {
	c := clock(now)
	return []native.Tool{
		native.Must(native.Typed("now", "Returns the current date and time in ISO 8601, to the second. A model has no clock of its own: call it before answering what depends on the date.",
			c.now, native.Title("Current time"), native.ReadOnly(), native.OpenWorld(false))),
		native.Must(native.Typed("convert_timezone", "Converts a time of today from one time zone to another and returns both times and the difference in hours. Daylight saving time is that of today.",
			c.convert, native.Title("Convert a time"), native.ReadOnly(), native.OpenWorld(false))),
	}
}

func (c clock) now(_ context.Context, call *native.Call, in nowArguments) (string, error) {
	l := time.UTC
	if in.Zone != "" {
		var err error
		if l, err = zone(in.Zone); err != nil {
			return "", err
		}
	}
	return iso(c.of(call).In(l)), nil
}

var timeOfDay = regexp.MustCompile(`^([01]?\d|2[0-3]):([0-5]?\d)$`)

func (c clock) convert(_ context.Context, call *native.Call, in convertArguments) (converted, error) {
	source, err := zone(in.Source)
	if err != nil {
		return converted{}, err
	}
	target, err := zone(in.Target)
	if err != nil {
		return converted{}, err
	}
	m := timeOfDay.FindStringSubmatch(in.Time)
	if m == nil {
		return converted{}, fmt.Errorf("%.32q is not a time; write HH:MM on a 24-hour clock, such as 14:30", in.Time)
	}
	hour, _ := strconv.Atoi(m[1])
	minute, _ := strconv.Atoi(m[2])
	today := c.of(call).In(source)
	from := date(today.Year(), today.Month(), today.Day(), hour, minute, source)
	to := from.In(target)
	_, a := from.Zone()
	_, b := to.Zone()
	return converted{SourceTime: iso(from), TargetTime: iso(to), Difference: hours(b - a), Source: in.Source, Target: in.Target}, nil
}

// hours writes a difference in seconds as hours with a sign: +8.0h, +5.75h.
func hours(seconds int) string {
	if seconds%3600 == 0 {
		return fmt.Sprintf("%+d.0h", seconds/3600)
	}
	return strings.TrimRight(fmt.Sprintf("%+.2f", float64(seconds)/3600), "0") + "h"
}
