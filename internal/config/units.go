package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/truncate"
)

// Duration is a time span as operators write it: "250ms", "5s", "1h30m", "7d".
// Fields of type time.Duration use the same syntax.
type Duration time.Duration

// String returns d in the form that [Duration.UnmarshalText] reads.
func (d Duration) String() string { return formatDuration(time.Duration(d)) }

// MarshalText returns String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses one or more numbers with units (ns, us, ms, s, m, h, d). "0" needs no unit.
// Negative spans are rejected.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := parseDuration(string(text))
	*d = Duration(v)
	return err
}

const day = 24 * time.Hour

func parseDuration(s string) (time.Duration, error) {
	rest, days := s, int64(0)
	if before, after, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(before, 10, 31)
		if err != nil {
			return 0, durationFault(s)
		}
		days, rest = int64(n), after
	}
	var d time.Duration
	if rest != "" || days == 0 && rest == s {
		var err error
		if d, err = time.ParseDuration(rest); err != nil {
			return 0, durationFault(s)
		}
	}
	if d < 0 {
		return 0, fmt.Errorf("%s is negative; use a duration of zero or more.", quote(s))
	}
	if days > int64((math.MaxInt64-d)/day) {
		return 0, fmt.Errorf("%s is longer than 290 years; use a shorter duration.", quote(s))
	}
	return time.Duration(days)*day + d, nil
}

func durationFault(s string) error {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return fmt.Errorf("%s has no unit; write for example \"%ss\" or \"%sms\".", quote(s), s, s)
	}
	return fmt.Errorf("%s is not a duration; write a number with its unit, such as \"250ms\", \"5s\", \"1h30m\" or \"7d\".", quote(s))
}

func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	if s == "0s" {
		return "0"
	}
	return s
}

// Size is a number of bytes as operators write it: "512B", "64KiB", "1MiB", "10MB".
type Size int64

// sizeUnits are ordered from large to small, binary before decimal.
var sizeUnits = [...]struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// String returns s in the form that [Size.UnmarshalText] reads.
func (s Size) String() string {
	if s == 0 {
		return "0"
	}
	for _, unit := range sizeUnits {
		if int64(s)%unit.bytes == 0 {
			return strconv.FormatInt(int64(s)/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText returns String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses a whole number with its unit (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). "0"
// needs no unit.
func (s *Size) UnmarshalText(text []byte) error {
	written := string(text)
	number := strings.TrimRight(written, "BKMGTikb")
	name := written[len(number):]
	n, err := strconv.ParseUint(strings.TrimSuffix(number, " "), 10, 63)
	if err != nil {
		return sizeFault(written)
	}
	if name == "" {
		if n == 0 {
			*s = 0
			return nil
		}
		return fmt.Errorf("%s has no unit; write for example \"%dMiB\" or \"%dB\".", quote(written), n, n)
	}
	for _, unit := range sizeUnits {
		if unit.name != name {
			continue
		}
		if n > uint64(math.MaxInt64/unit.bytes) {
			return fmt.Errorf("%s is too large; use fewer bytes.", quote(written))
		}
		*s = Size(int64(n) * unit.bytes)
		return nil
	}
	return sizeFault(written)
}

func sizeFault(s string) error {
	return fmt.Errorf("%s is not a size; write a whole number with its unit, such as \"512B\", \"64KiB\" or \"10MiB\".", quote(s))
}

// quote quotes a value for a sentence and shortens a long one.
func quote(s string) string { return strconv.Quote(truncate.Text(s, 40)) }
