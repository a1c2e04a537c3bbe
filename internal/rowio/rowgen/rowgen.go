// Package rowgen makes order files of any size for tests and benchmarks. The
// same size and seed give the same bytes. It is not part of the product.
package rowgen

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
)

// OrdersHeader is the first line of GenerateOrders, without its line feed.
const OrdersHeader = "order_id,customer,address,city,date,qty,price,discount,sku,status,note"

// GenerateOrders writes a well-formed CSV file of whole records that ends at or
// just behind the given number of bytes: LF record ends, unique order_id, about
// 150 bytes a row. 70% of the addresses are quoted, 10% of the rows have a
// newline in one, 10% a doubled quote, 1% CRLF. It returns the number of rows.
func GenerateOrders(w io.Writer, bytes int64, seed uint64) (rows int64, err error) {
	g := generator{rng: rand.New(rand.NewPCG(seed, 0x70696e7475))}
	out := bufio.NewWriterSize(w, 1<<16)
	size, err := out.WriteString(OrdersHeader + "\n")
	written := int64(size)
	for err == nil && written < bytes {
		rows++
		line := g.row(rows)
		written += int64(len(line))
		_, err = out.Write(line)
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return rows, fmt.Errorf("generate orders: %w", err)
	}
	return rows, nil
}

type generator struct {
	rng  *rand.Rand
	line []byte
}

var (
	givenNames = []string{"Siti", "Budi", "Dewi", "Agus", "Rina", "Joko", "Ayu", "Eko", "Wulan", "Hendra", "José"}
	surnames   = []string{"Wijaya", "Santoso", "Pratama", "Lestari", "Saputra", "Halim", "Nugroho", "Siregar", "Gunawan"}
	streets    = []string{"Jalan Merdeka", "Jl. Sudirman", "Gang Melati", "Jalan Diponegoro", "Jl. Gatot Subroto", "Kebon Jeruk Raya"}
	cities     = []string{"Jakarta Selatan", "Bandung", "Surabaya", "Yogyakarta", "Medan", "Makassar", "Denpasar"}
	statuses   = []string{"paid", "packed", "shipped", "returned", "new"}
	notes      = []string{"", "", "", "ok", "fragile", "call before delivery", "leave with the neighbour", "gift wrap"}
)

func pick(rng *rand.Rand, list []string) string { return list[rng.IntN(len(list))] }

// row builds one record; the slice is valid until the next call.
func (g *generator) row(n int64) []byte {
	b := append(g.line[:0], "ORD-"...)
	b = fmt.Appendf(b, "%010d,", n)
	b = append(b, pick(g.rng, givenNames)...)
	b = append(b, ' ')
	b = append(b, pick(g.rng, surnames)...)
	b = append(b, ',')
	b = g.address(b)
	b = append(b, ',')
	b = append(b, pick(g.rng, cities)...)
	b = fmt.Appendf(b, ",%04d-%02d-%02d,%d,", 2020+g.rng.IntN(7), 1+g.rng.IntN(12), 1+g.rng.IntN(28), 1+g.rng.IntN(40))
	b = fmt.Appendf(b, "%d.%02d,", 1+g.rng.IntN(900_000), g.rng.IntN(100))
	if g.rng.IntN(3) == 0 {
		b = strconv.AppendInt(b, int64(g.rng.IntN(5000)), 10)
	}
	b = fmt.Appendf(b, ",SKU-%06d-%c,", g.rng.IntN(1_000_000), 'A'+rune(g.rng.IntN(26)))
	b = append(b, pick(g.rng, statuses)...)
	b = append(b, ',')
	b = append(b, pick(g.rng, notes)...)
	g.line = append(b, '\n')
	return g.line
}

// address adds the address cell, quoted in 70 rows of 100.
func (g *generator) address(b []byte) []byte {
	street, number, zip := pick(g.rng, streets), 1+g.rng.IntN(400), 10000+g.rng.IntN(80000)
	dice := g.rng.IntN(100)
	if dice >= 70 {
		return fmt.Appendf(b, "%s No. %d RT %02d/RW %02d %d", street, number, 1+g.rng.IntN(20), 1+g.rng.IntN(20), zip)
	}
	middle := ", "
	switch {
	case dice < 1:
		middle = ",\r\n"
	case dice < 10:
		middle = ",\n"
	case dice < 20:
		middle = ` ""Toko Maju"", `
	}
	return fmt.Appendf(b, `"%s No. %d, RT %02d/RW %02d%sIndonesia %d"`, street, number, 1+g.rng.IntN(20), 1+g.rng.IntN(20), middle, zip)
}
