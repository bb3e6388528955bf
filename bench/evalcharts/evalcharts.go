// Package evalcharts draws the report of an evaluation as PNG files: a table by category, a heat
// map, a radar chart, the failure types, and the rewards with their parts alone. It is in the
// module of the benchmark, so that callyard does not link the libraries for plots and fonts.
package evalcharts

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/report"
)

// Charts is the input of the charts.
type Charts struct {
	Title  string
	Report *report.Report
	// Other is a second run, which the radar chart and the rewards show next to the first. It
	// may be nil.
	Other      *report.Report
	OtherTitle string
	Level      eval.Level
}

// Files returns the names of the files that [Charts.Write] writes, in the same order. The radar
// chart needs three categories.
func (c *Charts) Files() []string {
	names := []string{"table.png", "heatmap.png", "failures.png", "rewards.png"}
	if len(c.level(c.Report).Categories) >= 3 {
		names = append(names, "radar.png")
	}
	return names
}

// Write writes the files to a folder and creates it if necessary. The same report gives the
// same bytes.
func (c *Charts) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a folder of charts, which hold no secret
		return err
	}
	drawn := map[string]func() *sheet{"table.png": c.table, "heatmap.png": c.heatmap, "failures.png": c.failures, "rewards.png": c.rewards, "radar.png": c.radar}
	for _, name := range c.Files() {
		var b bytes.Buffer
		if _, err := (vgimg.PngCanvas{Canvas: drawn[name]().image}).WriteTo(&b); err != nil {
			return fmt.Errorf("drawing %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil { //nolint:gosec // as above
			return err
		}
	}
	return nil
}

func (c *Charts) level(r *report.Report) *report.Level { return r.At(c.Level) }

func (c *Charts) headline(what string) string {
	return fmt.Sprintf("%s: %s, extraction %s, %d samples", c.Title, what, c.Level, c.Report.Samples)
}

const (
	margin     = 0.6 * vg.Centimeter
	rowHeight  = 0.75 * vg.Centimeter
	headHeight = 1.4 * vg.Centimeter
)

var (
	ink   = color.Gray{Y: 25}
	faint = color.Gray{Y: 205}
	first = color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 255}
	next  = color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 255}
)

// sheet is a page with a headline. Coordinates start at its upper left corner.
type sheet struct {
	image  *vgimg.Canvas
	canvas draw.Canvas
	style  text.Style
	height vg.Length
}

func newSheet(width, height vg.Length, headline string) *sheet {
	height += headHeight + margin
	image := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(110), vgimg.UseBackgroundColor(color.White))
	s := &sheet{image: image, canvas: draw.New(image), style: plot.New().Title.TextStyle, height: height}
	s.style.YAlign, s.style.XAlign, s.style.Color = draw.YCenter, draw.XLeft, ink
	s.style.Font.Size = 12
	s.write(margin, headHeight/2, headline, draw.XLeft)
	s.style.Font.Size = 9.5
	return s
}

func (s *sheet) at(x, y vg.Length) vg.Point { return vg.Point{X: x, Y: s.height - y} }

func (s *sheet) write(x, y vg.Length, words string, align text.XAlignment) {
	style := s.style
	style.XAlign = align
	s.canvas.FillText(style, s.at(x, y), words)
}

func (s *sheet) fill(x, y, width, height vg.Length, shade color.Color) {
	if width > 0 && height > 0 {
		s.canvas.FillPolygon(shade, []vg.Point{s.at(x, y), s.at(x+width, y), s.at(x+width, y+height), s.at(x, y+height)})
	}
}

func (s *sheet) line(stroke color.Color, width vg.Length, points ...vg.Point) {
	s.canvas.StrokeLines(draw.LineStyle{Color: stroke, Width: width}, points)
}

// shortened shortens a name so that it fits next to a chart.
func shortened(name string) string {
	if runes := []rune(name); len(runes) > 26 {
		return string(runes[:25]) + "…"
	}
	return name
}

// heat returns the colour of a share, from red over yellow to green, light enough for dark text.
func heat(v float64) color.Color {
	v = max(0, min(1, v))
	from, to, at := [3]float64{232, 150, 140}, [3]float64{245, 225, 150}, 2*v
	if v > 0.5 {
		from, to, at = to, [3]float64{150, 208, 160}, 2*v-1
	}
	mix := func(i int) uint8 { return uint8(from[i] + at*(to[i]-from[i])) }
	return color.RGBA{R: mix(0), G: mix(1), B: mix(2), A: 255}
}
