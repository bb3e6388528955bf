package stats

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/callyard/callyard/internal/kit/parallel"
)

// Defaults. 10,000 iterations and 95 % intervals are those of the published evaluation; the seed is
// Callyard's choice.
const (
	DefaultIterations        = 10_000
	DefaultSeed       uint64 = 3407
	DefaultConfidence        = 0.95
)

// blockSize is the number of replicates that share one random generator. Changing it changes the
// drawn numbers and the results.
const blockSize = 250

// width is the number of columns that one pass sums.
const width = 4

// Options configures the bootstrap. The zero value uses the defaults.
type Options struct {
	Iterations int     // replicates; 0 is DefaultIterations
	Seed       uint64  // 0 is DefaultSeed
	Confidence float64 // confidence level of the interval; 0 is DefaultConfidence
	// Strata is the stratum of each row. Rows are drawn within their stratum, whose size does not
	// change. If nil, they are drawn from all rows.
	Strata []int
}

func (o Options) filled() Options {
	o.Iterations = cmp.Or(o.Iterations, DefaultIterations)
	o.Seed = cmp.Or(o.Seed, DefaultSeed)
	o.Confidence = cmp.Or(o.Confidence, DefaultConfidence)
	return o
}

// Estimate is a mean with its percentile bootstrap interval.
type Estimate struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Bootstrap returns the mean of each column with its percentile bootstrap interval. Each replicate
// draws as many rows as there are, with replacement, and the same rows for all columns. The ends of
// the interval are percentiles with linear interpolation. Columns must have the same length. Without
// rows, all estimates are 0. Bootstrap returns an error if ctx ends or the lengths differ.
func Bootstrap(ctx context.Context, columns [][]float64, options Options) ([]Estimate, error) {
	o := options.filled()
	means, err := Replicates(ctx, columns, o)
	if err != nil {
		return nil, err
	}
	out := make([]Estimate, len(columns))
	for i, column := range columns {
		out[i].Mean = Mean(column)
		out[i].Low, out[i].High = Interval(means[i], o.Confidence)
	}
	return out, nil
}

// Interval returns the ends of the interval of replicates, which it sorts.
func Interval(replicates []float64, confidence float64) (low, high float64) {
	slices.Sort(replicates)
	tail := (1 - confidence) / 2
	return percentile(replicates, tail), percentile(replicates, 1-tail)
}

// Replicates returns the means of the columns in each bootstrap replicate, in order; see
// [Bootstrap].
func Replicates(ctx context.Context, columns [][]float64, options Options) ([][]float64, error) {
	o := options.filled()
	rows := 0
	if len(columns) > 0 {
		rows = len(columns[0])
	}
	for _, column := range columns {
		if len(column) != rows {
			return nil, fmt.Errorf("a column has %d rows, another %d", len(column), rows)
		}
	}
	if o.Strata != nil && len(o.Strata) != rows {
		return nil, fmt.Errorf("there are %d rows and strata for %d", rows, len(o.Strata))
	}
	means := make([][]float64, len(columns))
	for i := range means {
		means[i] = make([]float64, o.Iterations)
	}
	if rows == 0 {
		return means, ctx.Err()
	}
	order, sizes := strataOf(rows, o.Strata)
	groups := make([][][width]float64, 0, (len(columns)+width-1)/width)
	for from := 0; from < len(columns); from += width {
		group := make([][width]float64, rows)
		for at, row := range order {
			for k := range min(width, len(columns)-from) {
				group[at][k] = columns[from+k][row]
			}
		}
		groups = append(groups, group)
	}
	err := inBlocks(ctx, o, func(random *rand.PCG, from, to int) {
		state := *random
		for g, group := range groups {
			*random = state // the same rows for all columns
			for replicate := from; replicate < to; replicate++ {
				sum := draw(random, group, sizes)
				for k := range min(width, len(columns)-g*width) {
					means[g*width+k][replicate] = sum[k] / float64(rows)
				}
			}
		}
	})
	return means, err
}

// strataOf orders the rows by stratum and returns the size of each stratum.
func strataOf(rows int, strata []int) (order, sizes []int) {
	order = make([]int, rows)
	for i := range order {
		order[i] = i
	}
	if strata == nil {
		return order, []int{rows}
	}
	slices.SortStableFunc(order, func(a, b int) int { return strata[a] - strata[b] })
	for i, row := range order {
		if i == 0 || strata[row] != strata[order[i-1]] {
			sizes = append(sizes, 0)
		}
		sizes[len(sizes)-1]++
	}
	return order, sizes
}

// draw sums the columns over one replicate. Each 64-bit number selects two rows by multiplication;
// the resulting bias is at most rows/2^32.
func draw(random *rand.PCG, rows [][width]float64, sizes []int) (sum [width]float64) {
	var a, b, c, d float64
	for _, size := range sizes {
		stratum := rows[:size]
		n := uint64(size)
		left := size
		for ; left >= 2; left -= 2 {
			bits := random.Uint64()
			x, y := &stratum[(bits>>32)*n>>32], &stratum[(bits&math.MaxUint32)*n>>32]
			a += x[0] + y[0]
			b += x[1] + y[1]
			c += x[2] + y[2]
			d += x[3] + y[3]
		}
		if left == 1 {
			x := &stratum[(random.Uint64()>>32)*n>>32]
			a, b, c, d = a+x[0], b+x[1], c+x[2], d+x[3]
		}
		rows = rows[size:]
	}
	return [width]float64{a, b, c, d}
}

// inBlocks calls do for each block of replicates with its generator, on all processors, and waits.
func inBlocks(ctx context.Context, o Options, do func(random *rand.PCG, from, to int)) error {
	return parallel.Each(ctx, o.blocks(), func(block int) error {
		if ctx.Err() == nil {
			do(generator(o.Seed, uint64(block)), block*blockSize, min((block+1)*blockSize, o.Iterations))
		}
		return ctx.Err()
	})
}

func (o Options) blocks() int { return (o.Iterations + blockSize - 1) / blockSize }

// generator returns the random generator of a block. SplitMix64 spreads the seeds of adjacent blocks,
// because seeds of PCG must not be close to each other.
func generator(seed, block uint64) *rand.PCG {
	state := splitMix(seed) ^ block
	return rand.NewPCG(splitMix(state), splitMix(state+0x9e3779b97f4a7c15))
}

func splitMix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Mean returns the arithmetic mean, or 0 for no values.
func Mean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// percentile returns the q-th quantile (0 to 1) of sorted values, with linear interpolation between
// neighbours, like numpy's default. It returns 0 for no values.
func percentile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := q * float64(len(sorted)-1)
	low := max(0, min(int(math.Floor(at)), len(sorted)-1))
	high := min(low+1, len(sorted)-1)
	return sorted[low] + float64((at-float64(low))*(sorted[high]-sorted[low]))
}
