package importtest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/job"
	"pintu/localstack/storetest"
)

// TestRandomBeside runs imports with different rules of one dataset beside each other, while everything goes
// wrong that can. What each found depends on their order, row by row; that no rule was broken does not.
func TestRandomBeside(t *testing.T) { runSeeds(t, randomBeside) }

func randomBeside(t *testing.T, seed uint64, verbose bool) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rng := rand.New(rand.NewPCG(seed, 8))
		s := newSchedule(w, rng)
		w.chunkBytes = []int64{8, 16, 24, 40, 64}[rng.IntN(5)]
		w.batchRows = 1 + rng.IntN(5)
		w.grown()
		var ups []*upload
		var rules []rule
		var said []string
		for range 2 + rng.IntN(3) {
			r := everyRule[rng.IntN(len(everyRule))]
			change := [][]func(*job.ImportSpec){nil, nil, nil, {dryRun}, {allOrNothing}}[rng.IntN(5)]
			u := staging(w, rng, r, change)
			ups, rules, said = append(ups, u), append(rules, r), append(said, fmt.Sprintf("%s %d %q", r, len(change), u.body))
		}
		s.run(ups)
		for i, u := range ups {
			w.verify(t, u.jobID)
			w.checkTaken(t, u, rules[i])
		}
		w.audit(t)
		if t.Failed() || verbose {
			t.Logf("go test ./importtest -run TestRandomBeside -v -seed %d\n%s\n%s", seed, strings.Join(said, "\n"), strings.Join(s.trace, "\n"))
		}
	})
}

// checkTaken looks at every record that an import took, as far as its entry is still there: what the entry says
// was there before must be what the rule allows.
func (w *world) checkTaken(t *testing.T, u *upload, r rule) {
	t.Helper()
	j := w.job(u.jobID)
	if j.Epoch == 0 {
		return
	}
	rows := rowsOf(u.body)
	pages := dynamodb.NewScanPaginator(w.db, &dynamodb.ScanInput{TableName: aws.String(storetest.RecordsTable)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range page.Items {
			slot := strconv.Itoa(j.Slot)
			if strings.HasPrefix(it["pk"].(*types.AttributeValueMemberS).Value, "STAGE#") || numberOf(it["e"+slot]) != j.Epoch {
				continue
			}
			row := rows[numberOf(it["r"+slot])-1]
			before := it["b"+slot].(*types.AttributeValueMemberB).Value
			switch was, _ := strconv.ParseInt(row.was, 10, 64); {
			case row.bad != "":
				t.Errorf("job %s applied row %d, which is %s", u.jobID, row.number, row.bad)
			case (r.conflict == "skip" || r.conflict == "reject") && len(before) > 1:
				t.Errorf("job %s took record %s of another job with row %d", u.jobID, row.key, row.number)
			case r.conflict == "if_unchanged" && numberOf(it["v"+slot]) != was:
				t.Errorf("job %s took version %d of record %s with row %d, which was made from %q", u.jobID, numberOf(it["v"+slot]), row.key, row.number, row.was)
			}
		}
	}
}

func numberOf(v types.AttributeValue) int64 {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	i, _ := strconv.ParseInt(n.Value, 10, 64)
	return i
}
