package bench

import (
	"fmt"
	"image/color"
	"io"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

const (
	panelWidth  = 13 * vg.Centimeter
	panelHeight = 8.5 * vg.Centimeter
	titleHeight = 1.6 * vg.Centimeter
	legendWidth = 4.5 * vg.Centimeter
	plotMargin  = 0.4 * vg.Centimeter
)

// WritePNG draws the medians: a row for each size, the rate by concurrency on
// the left and the median latency on the right. Both axes are logarithmic, so
// that equal ratios have equal distances.
func (r *Report) WritePNG(w io.Writer) error {
	rows := make([][]*plot.Plot, len(r.Sizes))
	var legend plot.Legend
	for i, size := range r.Sizes {
		var err error
		if rows[i], legend, err = r.panels(size); err != nil {
			return fmt.Errorf("drawing the plot: %w", err)
		}
	}
	width := 2*panelWidth + legendWidth + 2*plotMargin
	height := vg.Length(len(rows))*panelHeight + titleHeight + plotMargin
	image := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(110), vgimg.UseBackgroundColor(color.White))
	canvas := draw.New(image)

	r.drawTitle(draw.Crop(canvas, plotMargin, 0, height-titleHeight, 0), legend)
	tiles := draw.Tiles{Rows: len(rows), Cols: 2, PadX: plotMargin, PadY: plotMargin}
	places := plot.Align(rows, tiles, draw.Crop(canvas, plotMargin, -legendWidth-plotMargin, plotMargin, -titleHeight))
	for i := range rows {
		for j := range rows[i] {
			rows[i][j].Draw(places[i][j])
		}
	}
	legend.Left, legend.Top = true, true
	legend.Draw(draw.Crop(canvas, width-legendWidth, 0, 0, -titleHeight))

	if _, err := (vgimg.PngCanvas{Canvas: image}).WriteTo(w); err != nil {
		return fmt.Errorf("writing the plot: %w", err)
	}
	return nil
}

func (r *Report) drawTitle(c draw.Canvas, like plot.Legend) {
	style := like.TextStyle
	style.YAlign = draw.YTop
	style.Font.Size = 14
	c.FillText(style, vg.Point{X: c.Min.X, Y: c.Max.Y - 0.3*vg.Centimeter}, "Calls of the tool echo, "+r.Date.Format("2 January 2006"))
	style.Font.Size = 10
	c.FillText(style, vg.Point{X: c.Min.X, Y: c.Max.Y - 0.95*vg.Centimeter},
		fmt.Sprintf("%s; medians of %s", r.Machine, r.roundsText()))
}

// panels returns the two plots of a size and their common legend.
func (r *Report) panels(size int) ([]*plot.Plot, plot.Legend, error) {
	rate := r.panel(bytesText(size)+": calls per second", "calls/s")
	latency := r.panel(bytesText(size)+": median latency", "p50, ms")
	legend := plot.NewLegend()
	legend.Padding = vg.Points(3)
	for t, name := range r.Targets {
		var rates, latencies plotter.XYs
		for _, c := range r.Cells {
			// A logarithmic axis has no zero, so a target without answers has no point.
			if c.Size == size && c.Target == name && c.Median.Rate > 0 && c.Median.P50 > 0 {
				rates = append(rates, plotter.XY{X: float64(c.Concurrency), Y: c.Median.Rate})
				latencies = append(latencies, plotter.XY{X: float64(c.Concurrency), Y: c.Median.P50 / 1000})
			}
		}
		thumbs := make([]plot.Thumbnailer, 0, 2)
		for _, panel := range []struct {
			plot *plot.Plot
			xys  plotter.XYs
		}{{rate, rates}, {latency, latencies}} {
			line, points, err := curve(panel.xys, t)
			if err != nil {
				return nil, legend, err
			}
			if len(panel.xys) > 0 {
				panel.plot.Add(line, points)
			}
			thumbs = append(thumbs[:0], line, points)
		}
		legend.Add(name, thumbs...)
	}
	for _, p := range []*plot.Plot{rate, latency} {
		fit(p, r.Concurrency)
	}
	return []*plot.Plot{rate, latency}, legend, nil
}

// curve returns the line and the points of target number t in its colour and shape.
func curve(xys plotter.XYs, t int) (*plotter.Line, *plotter.Scatter, error) {
	if len(xys) == 0 {
		// Only for the legend.
		xys = plotter.XYs{{X: 1, Y: 1}}
	}
	line, points, err := plotter.NewLinePoints(xys)
	if err != nil {
		return nil, nil, err
	}
	color, shape := look(t)
	line.Color, line.Width = color, vg.Points(1.8)
	points.Color, points.Shape, points.Radius = color, shape, vg.Points(3.2)
	return line, points, nil
}

// panel returns an empty plot with its axes.
func (r *Report) panel(title, unit string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = vg.Points(4)
	p.X.Label.Text = "calls at once"
	p.Y.Label.Text = unit
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	var ticks []plot.Tick
	for _, c := range r.Concurrency {
		ticks = append(ticks, plot.Tick{Value: float64(c), Label: strconv.Itoa(c)})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Tick.Marker = decadeTicks{}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = gridColour(), gridColour()
	p.Add(grid)
	return p
}

// fit sets the axes around the data, with a margin. The margin also gives a range
// to a single value, which a logarithmic axis requires.
func fit(p *plot.Plot, concurrency []int) {
	p.X.Min, p.X.Max = float64(concurrency[0]), float64(concurrency[0])
	for _, c := range concurrency {
		p.X.Min, p.X.Max = min(p.X.Min, float64(c)), max(p.X.Max, float64(c))
	}
	if p.Y.Min > p.Y.Max || p.Y.Min <= 0 { // no data
		p.Y.Min, p.Y.Max = 1, 10
	}
	p.X.Min, p.X.Max = p.X.Min/1.15, p.X.Max*1.15
	p.Y.Min, p.Y.Max = p.Y.Min/1.5, p.Y.Max*1.5
}
