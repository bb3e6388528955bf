package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/episode/tally"
)

const (
	// maxBars limits the number of bars in a chart. More bars would be thinner than a line.
	maxBars = 168
	// chartWidth and chartHeight are the size of the SVG view box. The page scales it.
	chartWidth, chartHeight = 1000.0, 100.0
)

// bar is a bar of a chart: a count, with the failed part at its base. Lengths are in view box
// units.
type bar struct {
	X, Width        float64
	Y, Height       float64
	BadY, BadHeight float64
	From            time.Time
	Count, Bad      int64
}

// bars is a bar chart of counts over time.
type bars struct {
	Bars     []bar
	Most     int64
	Each     time.Duration // the time span of a bar
	From, To time.Time
}

// barsOf returns an empty chart of the time range in hours, or nil if it would have fewer than two
// bars.
func barsOf(from, to time.Time, step time.Duration) *bars {
	n := int((to.Sub(from) + step - 1) / step)
	if n < 2 {
		return nil
	}
	of := (n + maxBars - 1) / maxBars // steps per bar
	n = (n + of - 1) / of
	b := &bars{Bars: make([]bar, n), Each: time.Duration(of) * step, From: from, To: to}
	for i := range b.Bars {
		b.Bars[i].From = from.Add(time.Duration(i) * b.Each)
	}
	return b
}

// add counts calls at a time. It ignores times outside the chart.
func (b *bars) add(at time.Time, count, bad int64) {
	if i := int(at.Sub(b.From) / b.Each); !at.Before(b.From) && i < len(b.Bars) {
		b.Bars[i].Count += count
		b.Bars[i].Bad += bad
	}
}

// draw computes the positions and sizes of the bars.
func (b *bars) draw() {
	for i := range b.Bars {
		b.Most = max(b.Most, b.Bars[i].Count)
	}
	wide := chartWidth / float64(len(b.Bars))
	for i := range b.Bars {
		one := &b.Bars[i]
		one.X, one.Width = float64(i)*wide+wide*0.1, wide*0.8
		if b.Most > 0 {
			one.Height, one.BadHeight = chartHeight*float64(one.Count)/float64(b.Most), chartHeight*float64(one.Bad)/float64(b.Most)
		}
		one.Y, one.BadY = chartHeight-one.Height, chartHeight-one.BadHeight
	}
}

// Unit returns the time span of a bar in words.
func (b *bars) Unit() string {
	switch {
	case b.Each == time.Hour:
		return "hour"
	case b.Each == 24*time.Hour:
		return "day"
	case b.Each%(24*time.Hour) == 0:
		return fmt.Sprintf("%d days", b.Each/(24*time.Hour))
	}
	return fmt.Sprintf("%d hours", b.Each/time.Hour)
}

// length formats a length of the drawing.
func length(x float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".")
}

// curve is a line chart over time. Points are in view box units.
type curve struct {
	Points      string
	Least, Most float64
	Zero        string // y of the value 0; empty if it is outside the drawing
	From, To    time.Time
}

// curveOf draws means over time. It returns nil for fewer than two points, which make no line.
func curveOf(points []tally.Point) *curve {
	if len(points) < 2 {
		return nil
	}
	c := &curve{Least: points[0].Mean, Most: points[0].Mean, From: points[0].From, To: points[len(points)-1].To}
	for _, p := range points {
		c.Least, c.Most = min(c.Least, p.Mean), max(c.Most, p.Mean)
	}
	const edge = 4 // room for the width of the line
	height := func(y float64) string {
		if c.Most <= c.Least {
			return length(chartHeight / 2)
		}
		return length(chartHeight - edge - (chartHeight-2*edge)*(y-c.Least)/(c.Most-c.Least))
	}
	if c.Least < 0 && c.Most > 0 {
		c.Zero = height(0)
	}
	lasts := c.To.Sub(c.From).Seconds()
	places := make([]string, len(points))
	for i, p := range points {
		x := float64(i) / float64(len(points)-1)
		if lasts > 0 {
			x = p.From.Add(p.To.Sub(p.From)/2).Sub(c.From).Seconds() / lasts
		}
		places[i] = length(chartWidth*max(0, min(1, x))) + "," + height(p.Mean)
	}
	c.Points = strings.Join(places, " ")
	return c
}
