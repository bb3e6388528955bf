package evalcharts

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/report"
)

const nameWidth = 5.6 * vg.Centimeter

// table draws the metrics of each category with their intervals, and both means.
func (c *Charts) table() *sheet {
	const column = 4.3 * vg.Centimeter
	l := c.level(c.Report)
	type row struct {
		name, samples string
		metrics       *report.Metrics
	}
	var rows []row
	for i := range l.Categories {
		g := &l.Categories[i]
		rows = append(rows, row{g.Name, fmt.Sprint(g.Samples), &g.Metrics})
	}
	rows = append(rows, row{"mean over samples", fmt.Sprint(c.Report.Samples), &l.Micro}, row{"mean over categories", "", &l.Macro})
	s := newSheet(2*margin+nameWidth+1.8*vg.Centimeter+4*column, rowHeight*vg.Length(len(rows)+1), c.headline("metrics by category, in percent"))
	samples, from := margin+nameWidth+1.2*vg.Centimeter, margin+nameWidth+1.8*vg.Centimeter
	y := headHeight + rowHeight/2
	s.write(margin, y, "category", draw.XLeft)
	s.write(samples, y, "samples", draw.XRight)
	for k, name := range report.MetricNames() {
		s.write(from+column*vg.Length(k+1), y, name, draw.XRight)
	}
	for i, r := range rows {
		y = headHeight + rowHeight*(vg.Length(i)+1.5)
		s.line(faint, 0.5, s.at(margin, y-rowHeight/2), s.at(from+4*column, y-rowHeight/2))
		s.write(margin, y, shortened(r.name), draw.XLeft)
		s.write(samples, y, r.samples, draw.XRight)
		for k, e := range r.metrics.List() {
			s.write(from+column*vg.Length(k+1), y, fmt.Sprintf("%.1f  [%.1f, %.1f]", 100*e.Mean, 100*e.Low, 100*e.High), draw.XRight)
		}
	}
	return s
}

// heatmap draws a coloured cell for each metric of each category.
func (c *Charts) heatmap() *sheet {
	const column = 2.9 * vg.Centimeter
	l := c.level(c.Report)
	s := newSheet(2*margin+nameWidth+4*column, rowHeight*vg.Length(len(l.Categories)+1), c.headline("heat map, in percent"))
	for k, name := range report.MetricNames() {
		s.write(margin+nameWidth+column*(vg.Length(k)+0.5), headHeight+rowHeight/2, name, draw.XCenter)
	}
	for i := range l.Categories {
		top := headHeight + rowHeight*vg.Length(i+1)
		s.write(margin, top+rowHeight/2, shortened(l.Categories[i].Name), draw.XLeft)
		for k, e := range l.Categories[i].Metrics.List() {
			x := margin + nameWidth + column*vg.Length(k)
			s.fill(x+1, top+1, column-2, rowHeight-2, heat(e.Mean))
			s.write(x+column/2, top+rowHeight/2, fmt.Sprintf("%.1f", 100*e.Mean), draw.XCenter)
		}
	}
	return s
}

// failureColours are the colours of the HTML page.
var failureColours = map[eval.Type]color.Color{
	eval.TypeCorrect: color.RGBA{R: 0x4f, G: 0x9d, B: 0x69, A: 255}, eval.TypePartial: color.RGBA{R: 0xa8, G: 0xc6, B: 0x6c, A: 255},
	eval.TypeWrong: color.RGBA{R: 0xd1, G: 0x60, B: 0x3d, A: 255}, eval.TypeNone: color.RGBA{R: 0x8a, G: 0x94, B: 0xa0, A: 255},
	eval.TypeFormat: color.RGBA{R: 0xd9, G: 0xa4, B: 0x41, A: 255},
}

// failures draws a bar for each category with the share of each type of answer.
func (c *Charts) failures() *sheet {
	const width = 14 * vg.Centimeter
	l := c.level(c.Report)
	s := newSheet(2*margin+nameWidth+width, rowHeight*vg.Length(len(l.Categories)+1), c.headline("types of answers"))
	for i := range l.Categories {
		top, x, answers := headHeight+rowHeight*vg.Length(i), margin+nameWidth, 0
		for _, n := range l.Categories[i].Types {
			answers += n
		}
		s.write(margin, top+rowHeight/2, shortened(l.Categories[i].Name), draw.XLeft)
		for _, t := range eval.Types() {
			n := l.Categories[i].Types[t]
			part := width * vg.Length(n) / vg.Length(max(1, answers))
			s.fill(x, top+2, part, rowHeight-4, failureColours[t])
			if part > 0.8*vg.Centimeter {
				s.write(x+part/2, top+rowHeight/2, fmt.Sprint(n), draw.XCenter)
			}
			x += part
		}
	}
	y := headHeight + rowHeight*(vg.Length(len(l.Categories))+0.5)
	for k, t := range eval.Types() {
		x := margin + nameWidth + 2.7*vg.Centimeter*vg.Length(k)
		s.fill(x, y-5, 10, 10, failureColours[t])
		s.write(x+15, y, string(t), draw.XLeft)
	}
	return s
}

// runs returns the runs that a chart shows, with their colours.
func (c *Charts) runs() (titles []string, reports []*report.Report, colours []color.RGBA) {
	titles, reports, colours = []string{c.Title}, []*report.Report{c.Report}, []color.RGBA{first}
	if c.Other != nil {
		titles, reports, colours = append(titles, c.OtherTitle), append(reports, c.Other), append(colours, next)
	}
	return titles, reports, colours
}

// rewards draws a bar with its interval for the whole reward and for each of its parts alone (the
// ablations).
func (c *Charts) rewards() *sheet {
	const width = 14 * vg.Centimeter
	titles, reports, colours := c.runs()
	low, high, rows := 0.0, 0.1, 0
	for _, r := range reports {
		for _, w := range r.Rewards {
			low, high, rows = min(low, w.Mean.Low), max(high, w.Mean.High), rows+1
		}
	}
	s := newSheet(2*margin+nameWidth+width+2*vg.Centimeter, rowHeight*vg.Length(rows+1), fmt.Sprintf("%s: reward %s and its parts alone", c.Title, c.Report.Scoring.Reward.Name))
	x := func(v float64) vg.Length { return margin + nameWidth + width*vg.Length((v-low)/(high-low)) }
	row := 0
	for k := range c.Report.Rewards {
		for i, r := range reports {
			if k >= len(r.Rewards) {
				continue
			}
			w, top := r.Rewards[k], headHeight+rowHeight*vg.Length(row)
			row++
			if i == 0 {
				s.write(margin, top+rowHeight/2, w.Name, draw.XLeft)
			}
			s.fill(min(x(0), x(w.Mean.Mean)), top+3, max(x(0), x(w.Mean.Mean))-min(x(0), x(w.Mean.Mean)), rowHeight-6, colours[i])
			s.line(ink, 1.2, s.at(x(w.Mean.Low), top+rowHeight/2), s.at(x(w.Mean.High), top+rowHeight/2))
			s.write(x(max(0, w.Mean.High))+5, top+rowHeight/2, fmt.Sprintf("%.3f", w.Mean.Mean), draw.XLeft)
		}
	}
	s.line(ink, 0.7, s.at(x(0), headHeight), s.at(x(0), headHeight+rowHeight*vg.Length(row)))
	s.legend(headHeight+rowHeight*(vg.Length(row)+0.5), titles, colours)
	return s
}

func (s *sheet) legend(y vg.Length, names []string, colours []color.RGBA) {
	for i, name := range names {
		x := margin + nameWidth + 6*vg.Centimeter*vg.Length(i)
		s.fill(x, y-5, 10, 10, colours[i])
		s.write(x+15, y, shortened(name), draw.XLeft)
	}
}

// radar draws F1 by category, of both runs or together with the accuracy.
func (c *Charts) radar() *sheet {
	const radius, width, height = 5.5 * vg.Centimeter, 24 * vg.Centimeter, 14.5 * vg.Centimeter
	titles, reports, colours := c.runs()
	categories := c.level(c.Report).Categories
	s := newSheet(width, height, c.headline("F1 by category"))
	center := s.at(width/2, headHeight+6.7*vg.Centimeter)
	point := func(i int, r vg.Length) vg.Point {
		angle := math.Pi/2 - 2*math.Pi*float64(i)/float64(len(categories))
		return vg.Point{X: center.X + r*vg.Length(math.Cos(angle)), Y: center.Y + r*vg.Length(math.Sin(angle))}
	}
	ring := func(at func(i int) float64) []vg.Point {
		points := make([]vg.Point, 0, len(categories)+1)
		for i := range categories {
			points = append(points, point(i, radius*vg.Length(at(i))))
		}
		return append(points, points[0])
	}
	for _, share := range []float64{0.25, 0.5, 0.75, 1} {
		s.line(faint, 0.6, ring(func(int) float64 { return share })...)
	}
	for i := range categories {
		end := point(i, radius)
		s.line(faint, 0.6, center, end)
		align := draw.XCenter
		switch {
		case end.X > center.X+5:
			align = draw.XLeft
		case end.X < center.X-5:
			align = draw.XRight
		}
		end = point(i, radius+10)
		s.write(end.X, s.height-end.Y, shortened(categories[i].Name), align)
	}
	area := func(at func(i int) float64, shade color.RGBA) {
		points := ring(at)
		s.canvas.FillPolygon(color.NRGBA{R: shade.R, G: shade.G, B: shade.B, A: 40}, points)
		s.line(shade, 1.8, points...)
	}
	for k, r := range reports {
		means := make(map[string]float64)
		for _, g := range c.level(r).Categories {
			means[g.Name] = g.Metrics.F1.Mean
		}
		area(func(i int) float64 { return means[categories[i].Name] }, colours[k])
	}
	if len(reports) == 1 {
		area(func(i int) float64 { return categories[i].Metrics.Accuracy.Mean }, next)
		titles, colours = []string{"F1", "accuracy"}, []color.RGBA{first, next}
	}
	s.legend(headHeight+height-0.4*vg.Centimeter, titles, colours)
	return s
}
