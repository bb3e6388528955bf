package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"

	"github.com/callyard/callyard/internal/eval"
)

// Colours of the failure types. Their order distinguishes them without colour.
var typeColours = map[eval.Type]string{
	eval.TypeCorrect: "#4f9d69", eval.TypePartial: "#a8c66c", eval.TypeWrong: "#d1603d", eval.TypeNone: "#8a94a0", eval.TypeFormat: "#d9a441",
}

// radar draws F1 and accuracy by category, for three categories or more.
func radar(l *Level) template.HTML {
	n := len(l.Categories)
	if n < 3 {
		return ""
	}
	const size, radius = 420.0, 130.0
	var b strings.Builder
	fmt.Fprintf(&b, `<svg role="img" aria-label="F1 and accuracy by category" viewBox="0 0 %.0f %.0f" width="%.0f">`, size+160, size, size+160)
	point := func(i int, r float64) (x, y float64) {
		angle := 2*math.Pi*float64(i)/float64(n) - math.Pi/2
		return size/2 + 60 + r*math.Cos(angle), size/2 + r*math.Sin(angle)
	}
	polygon := func(class string, at func(i int) float64) {
		points := make([]string, n)
		for i := range n {
			x, y := point(i, radius*at(i))
			points[i] = fmt.Sprintf("%.1f,%.1f", x, y)
		}
		fmt.Fprintf(&b, `<polygon class="%s" points="%s"/>`, class, strings.Join(points, " "))
	}
	for _, ring := range []float64{0.25, 0.5, 0.75, 1} {
		polygon("grid", func(int) float64 { return ring })
	}
	for i, c := range l.Categories {
		x, y := point(i, radius)
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, size/2+60, size/2, x, y)
		x, y = point(i, radius+14)
		anchor := "middle"
		switch {
		case x > size/2+70:
			anchor = "start"
		case x < size/2+50:
			anchor = "end"
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s" dominant-baseline="middle">%s</text>`, x, y, anchor, html.EscapeString(shortened(c.Name)))
	}
	polygon("a area", func(i int) float64 { return l.Categories[i].Metrics.F1.Mean })
	polygon("b area", func(i int) float64 { return l.Categories[i].Metrics.Accuracy.Mean })
	fmt.Fprintf(&b, `<rect class="a" x="8" y="8" width="12" height="12"/><text x="26" y="18">F1</text><rect class="b" x="8" y="28" width="12" height="12"/><text x="26" y="38">accuracy</text></svg>`)
	return template.HTML(b.String()) //nolint:gosec // names are escaped, all else is ours
}

// bars draws the share of each failure type, one bar per category.
func bars(l *Level) template.HTML {
	const left, width, height = 180.0, 520.0, 22.0
	var b strings.Builder
	total := height*float64(len(l.Categories)) + 40
	fmt.Fprintf(&b, `<svg role="img" aria-label="Failure types by category" viewBox="0 0 %.0f %.0f" width="%.0f">`, left+width+20, total, left+width+20)
	for i, c := range l.Categories {
		y, x, answers := float64(i)*height, left, 0
		for _, n := range c.Types {
			answers += n
		}
		fmt.Fprintf(&b, `<text x="%.0f" y="%.1f" text-anchor="end">%s</text>`, left-8, y+14, html.EscapeString(shortened(c.Name)))
		for _, t := range eval.Types() {
			part := width * float64(c.Types[t]) / float64(max(1, answers))
			if part > 0 {
				fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s: %d</title></rect>`, x, y+2, part, height-4, typeColours[t], t, c.Types[t])
			}
			x += part
		}
	}
	x := left
	for _, t := range eval.Types() {
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="12" height="12" fill="%s"/><text x="%.1f" y="%.1f">%s</text>`, x, total-24, typeColours[t], x+17, total-14, t)
		x += 90
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // names are escaped, all else is ours
}

// shortened returns a name that fits next to a figure.
func shortened(name string) string {
	runes := []rune(name)
	if len(runes) <= 24 {
		return name
	}
	return string(runes[:23]) + "…"
}
