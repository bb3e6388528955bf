package console

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// counters is what the console reads of a front door's metrics: the figures that all front doors
// have alike, and what that one does.
type counters struct {
	began                     float64 // when the front door started, in Unix seconds; 0 where it does not say
	own                       doorLoad
	held, workers, batches    float64 // negative where the front door does not say
	oldestHeld, disagreements float64
}

// readCounters reads the text format of Prometheus. Lines that it does not know are skipped.
func readCounters(text []byte) counters {
	c := counters{own: doorLoad{counts: counts{buckets: make(map[float64]float64)}, inFlight: -1}, held: -1, workers: -1, batches: -1, oldestHeld: -1}
	for line := range bytes.Lines(text) {
		name, labels, value, ok := sample(string(bytes.TrimSpace(line)))
		if !ok {
			continue
		}
		switch strings.TrimPrefix(name, "callyard") {
		case "process_start_time_seconds":
			c.began = value
		case "_calls_total":
			c.own.ended += value
			switch outcome := labelOf(labels, "outcome"); outcome {
			case "ok":
			case "tool-error":
				c.own.toolErrors += value
			default:
				c.own.failed += value
			}
		case "_call_seconds_bucket":
			if le, err := strconv.ParseFloat(labelOf(labels, "le"), 64); err == nil && !math.IsNaN(le) {
				c.own.buckets[le] += value
			}
		case "_calls_in_flight":
			c.own.inFlight = value
		case "_approvals_waiting":
			c.held = value
		case "_approvals_oldest_seconds":
			c.oldestHeld = value
		case "_workers":
			c.workers = value
		case "_batches_open":
			c.batches = value
		case "_config_disagreements":
			c.disagreements = value
		case "_waiting_calls":
			c.own.waiting += value
		}
	}
	c.own.id = strconv.FormatFloat(c.began, 'f', -1, 64)
	return c
}

// sample splits a line into the name of the metric, its labels and its value.
func sample(line string) (name, labels string, value float64, ok bool) {
	if line == "" || line[0] == '#' {
		return "", "", 0, false
	}
	name, rest := line, ""
	if i := strings.IndexByte(line, '{'); i >= 0 {
		end := strings.LastIndexByte(line, '}')
		if end < i {
			return "", "", 0, false
		}
		name, labels, rest = line[:i], line[i+1:end], line[end+1:]
	} else if i := strings.IndexByte(line, ' '); i >= 0 {
		name, rest = line[:i], line[i:]
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return "", "", 0, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	return name, labels, value, err == nil && !math.IsNaN(value)
}

// labelOf returns the value of a label; empty where it is not there. The values that are
// asked for need no escapes.
func labelOf(labels, name string) string {
	for labels != "" {
		key, rest, ok := strings.Cut(labels, `="`)
		if !ok {
			return ""
		}
		end := 0
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			return ""
		}
		if strings.TrimLeft(key, ", ") == name {
			return rest[:end]
		}
		labels = rest[end+1:]
	}
	return ""
}
