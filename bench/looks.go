package bench

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg/draw"
)

// look returns the colour and the shape of target number t. The colours are distinguishable
// for colour-blind people, and the shapes in black and white.
func look(t int) (color.Color, draw.GlyphDrawer) {
	colors := [...]color.Color{
		color.RGBA{A: 255, R: 0x55, G: 0x55, B: 0x55},
		color.RGBA{A: 255, R: 0x00, G: 0x72, B: 0xb2},
		color.RGBA{A: 255, R: 0xd5, G: 0x5e, B: 0x00},
		color.RGBA{A: 255, R: 0x00, G: 0x9e, B: 0x73},
		color.RGBA{A: 255, R: 0xcc, G: 0x79, B: 0xa7},
		color.RGBA{A: 255, R: 0xb8, G: 0x9b, B: 0x00},
		color.RGBA{A: 255, R: 0x56, G: 0xb4, B: 0xe9},
	}
	shapes := [...]draw.GlyphDrawer{
		draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.SquareGlyph{}, draw.RingGlyph{},
	}
	return colors[t%len(colors)], shapes[t%len(shapes)]
}

func gridColour() color.Color { return color.Gray{Y: 225} }

// decadeTicks labels a logarithmic axis at 1, 2 and 5 of each decade.
type decadeTicks struct{}

// Ticks returns the ticks from low to high.
func (decadeTicks) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for exponent := math.Floor(math.Log10(low)); exponent <= math.Log10(high); exponent++ {
		for digit := 1.0; digit < 10; digit++ {
			value := digit * math.Pow(10, exponent)
			if value < low || value > high {
				continue
			}
			tick := plot.Tick{Value: value}
			if digit == 1 || digit == 2 || digit == 5 {
				tick.Label = tickText(value)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

func tickText(value float64) string {
	if value >= 1000 {
		return strconv.FormatFloat(value/1000, 'g', 3, 64) + "k"
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}
