package chaos

import (
	"fmt"
	"image/color"
	"io"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

const (
	pictureWidth = 30 * vg.Centimeter
	rateHeight   = 8 * vg.Centimeter
	faultsHeight = 6 * vg.Centimeter
	pictureEdge  = 0.5 * vg.Centimeter
)

// WritePNG draws the campaign over time. The upper half shows the calls that ended per second
// and the number of unknown ones. The lower half shows the faults and how long their victims
// were down.
func (r *Report) WritePNG(w io.Writer) error {
	above, err := r.rates()
	if err != nil {
		return fmt.Errorf("drawing the timeline: %w", err)
	}
	below, err := r.strikes()
	if err != nil {
		return fmt.Errorf("drawing the timeline: %w", err)
	}
	above.X.Min, above.X.Max = 0, max(r.Took.Seconds(), 1)
	below.X.Min, below.X.Max = above.X.Min, above.X.Max
	image := vgimg.NewWith(vgimg.UseWH(pictureWidth, rateHeight+faultsHeight+2*pictureEdge), vgimg.UseDPI(110), vgimg.UseBackgroundColor(color.White))
	canvas := draw.Crop(draw.New(image), pictureEdge, -pictureEdge, pictureEdge, -pictureEdge)
	rows := [][]*plot.Plot{{above}, {below}}
	places := plot.Align(rows, draw.Tiles{Rows: 2, Cols: 1, PadY: pictureEdge}, canvas)
	for i := range rows {
		rows[i][0].Draw(places[i][0])
	}
	if _, err := (vgimg.PngCanvas{Canvas: image}).WriteTo(w); err != nil {
		return fmt.Errorf("writing the timeline: %w", err)
	}
	return nil
}

// rates draws the upper half.
func (r *Report) rates() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s, seed %d: %d calls, %d unknown, %d lost, %d ran twice", r.Name, r.Seed, r.Calls, r.States["unknown"], r.Lost, r.Duplicates)
	p.Y.Label.Text = "calls ended/s; calls under way"
	p.Legend.Top, p.Legend.Left = true, true
	var ended, under plotter.XYs
	last := point{}
	step := max(r.Took/300, time.Second)
	for _, now := range r.Points {
		if now.At-last.At < step {
			continue
		}
		x := now.At.Seconds()
		ended = append(ended, plotter.XY{X: x, Y: float64(now.Ended-last.Ended) / (now.At - last.At).Seconds()})
		under = append(under, plotter.XY{X: x, Y: float64(now.InFlight)})
		last = now
	}
	for _, c := range []struct {
		name  string
		xys   plotter.XYs
		color color.Color
	}{{"ended/s", ended, color.RGBA{R: 0x1f, G: 0x77, B: 0xb4, A: 0xff}}, {"under way", under, color.RGBA{R: 0xff, G: 0x7f, B: 0x0e, A: 0xff}}} {
		if len(c.xys) == 0 {
			continue
		}
		line, err := plotter.NewLine(c.xys)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = c.color, vg.Points(1.2)
		p.Add(line)
		p.Legend.Add(c.name, line)
	}
	p.Y.Min = 0
	return p, nil
}

// strikes draws the lower half: a row for each kind of fault, and a bar for each fault from
// its strike to the recovery of its victim.
func (r *Report) strikes() (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text = "s"
	kinds := r.kinds()
	var ticks []plot.Tick
	for row, kind := range kinds {
		ticks = append(ticks, plot.Tick{Value: float64(row), Label: fmt.Sprintf("%s (%d)", kind, r.count(kind))})
		for _, s := range r.Scars {
			if s.Kind != kind {
				continue
			}
			from := s.At.Seconds()
			line, err := plotter.NewLine(plotter.XYs{{X: from, Y: float64(row)}, {X: from + max(s.Back.Seconds(), r.Took.Seconds()/1000), Y: float64(row)}})
			if err != nil {
				return nil, err
			}
			line.Width, line.Color = vg.Points(9), color.RGBA{R: 0xd6, G: 0x27, B: 0x28, A: 0xff}
			p.Add(line)
		}
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Min, p.Y.Max = -0.6, float64(max(len(kinds), 1))-0.4
	return p, nil
}
