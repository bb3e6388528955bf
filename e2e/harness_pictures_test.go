package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"slices"
	"strings"

	"github.com/chromedp/chromedp"
)

// firstScreen returns a PNG of the visible part of the page, with a palette: a page has
// few colors, so this takes a third of the bytes.
func (p *tab) firstScreen() string {
	p.t.Helper()
	return p.screenFrom("body")
}

// screenFrom is [tab.firstScreen] with the selected element at the top.
func (p *tab) screenFrom(selector string) string {
	p.t.Helper()
	asked[int](p, fmt.Sprintf(`document.querySelector(%q).scrollIntoView(); 0`, selector))
	picture, err := png.Decode(strings.NewReader(p.shot(chromedp.CaptureScreenshot())))
	if err != nil {
		p.t.Fatal(err)
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, paletted(picture)); err != nil {
		p.t.Fatal(err)
	}
	return small.String()
}

// paletted returns the image with its 256 most frequent colors; other colors become the nearest one.
func paletted(of image.Image) *image.Paletted {
	bounds, counts := of.Bounds(), map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(of.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return cmp.Compare(counts[b], counts[a]) })
	palette := make(color.Palette, min(len(frequent), 256))
	for i := range palette {
		palette[i] = frequent[i]
	}
	nearest := map[color.RGBA]uint8{}
	for c := range counts {
		nearest[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			out.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	return out
}
