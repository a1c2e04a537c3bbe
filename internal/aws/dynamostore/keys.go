package dynamostore

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/id"
	"pintu/internal/record"
)

// Every key shape of both tables. Tenants, clients and dataset names are checked to hold neither '#'
// nor upper case before they come here; free strings of clients (Idempotency-Key, deduplication_key)
// go into keys as hashes and are compared in full by what they point at.
//
//	control  job#TENANT#JOB                 job                 the job
//	         job#TENANT#JOB                 chunk#KKKKKKKK      one chunk of an import
//	         rows#TENANT#JOB#KKKKKKKK       NNNNNNNNNNNN        one quarantined row of chunk K
//	         rowlog#TENANT#JOB              NNNNNNNNNNNN#RRRRRR a former state of a row
//	         idem#TENANT#CLIENT#HASH        idem                one Idempotency-Key
//	         dedupe#TENANT#KIND#HASH        dedupe              one deduplication_key
//	         dataset#TENANT#NAME            head                newest version
//	         dataset#TENANT#NAME            v#NNNNNN            one version, never changed
//	         dataset#TENANT#NAME            slots               import slots and the last epoch
//	         dataset#TENANT#NAME            wait#TTTTTTTTTTTTTTT#JOB  one job waiting for a slot
//	         client#TENANT#CLIENT           client              limits
//	         client#TENANT#CLIENT           active              jobs that are not terminal
//	         client#TENANT#CLIENT           minute#M            submits and waiting seconds of a minute
//	         token#ID                       token               one token's hash
//	records  TENANT#DATASET#SS              key text            one stored row
//	         STAGE#TENANT#JOB#SS            key text            one row that a job staged
//
// Index due (sparse, keys only): due_shard, due_at (ms). Index jobs (keys only): jobs_of (tenant), jobs_at.
const (
	attrPK, attrSK          = "pk", "sk"
	attrDueShard, attrDueAt = "due_shard", "due_at"
	attrJobsOf, attrJobsAt  = "jobs_of", "jobs_at"
	attrTTL                 = "ttl"
	indexDue, indexJobs     = "due", "jobs"
	dueShards               = 8
	skJob, skIdem, skDedupe = "job", "idem", "dedupe"
	skHead, skSlots         = "head", "slots"
	skClient, skActive      = "client", "active"
	skToken                 = "token"
	prefixChunk, prefixWait = "chunk#", "wait#"
)

type key struct{ pk, sk string }

func (k key) item() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrPK: str(k.pk), attrSK: str(k.sk)}
}

func jobKey(tenant string, job id.Job) key { return key{"job#" + tenant + "#" + string(job), skJob} }

func chunkKey(tenant string, job id.Job, chunk int) key {
	return key{jobKey(tenant, job).pk, fmt.Sprintf("%s%08d", prefixChunk, chunk)}
}

func rowsKey(tenant string, job id.Job, chunk int, row int64) key {
	return key{fmt.Sprintf("rows#%s#%s#%08d", tenant, job, chunk), fmt.Sprintf("%012d", row)}
}

func idemKey(tenant, client, idempotencyKey string) key {
	return key{"idem#" + tenant + "#" + client + "#" + hashed(idempotencyKey), skIdem}
}

// dedupeKey scopes a business key by tenant, kind and, for imports, dataset.
func dedupeKey(tenant, kind, dataset, dedupe string) key {
	return key{"dedupe#" + tenant + "#" + kind + "#" + hashed(dataset+"\x00"+dedupe), skDedupe}
}

func datasetKey(tenant, name, sk string) key { return key{"dataset#" + tenant + "#" + name, sk} }

func versionSK(n int) string { return fmt.Sprintf("v#%06d", n) }

func waitSK(queuedAt time.Time, job id.Job) string {
	return fmt.Sprintf("%s%015d#%s", prefixWait, queuedAt.UnixMilli(), job)
}

// waitingJob reads the job out of a key made with waitSK.
func waitingJob(k key) id.Job {
	return id.Job(k.sk[strings.LastIndexByte(k.sk, '#')+1:])
}

func clientKey(tenant, client, sk string) key { return key{"client#" + tenant + "#" + client, sk} }

func minuteSK(t time.Time) string { return fmt.Sprintf("minute#%d", t.Unix()/60) }

func tokenKey(tokenID string) key { return key{"token#" + tokenID, skToken} }

// recordKey spreads a dataset over record.Shards partitions by its key text.
func recordKey(tenant, dataset, keyText string) key {
	return key{recordPK(tenant, dataset, shardOf(keyText)), keyText}
}

func shardOf(keyText string) int {
	h := fnv.New32a()
	h.Write([]byte(keyText))
	return int(h.Sum32() % record.Shards)
}

func recordPK(tenant, dataset string, shard int) string {
	return fmt.Sprintf("%s#%s#%02d", tenant, dataset, shard)
}

// stageKey keeps a staged row in the shard of its record.
func stageKey(tenant, jobID, keyText string) key {
	return key{stagePK(tenant, jobID, shardOf(keyText)), keyText}
}

func stagePK(tenant, jobID string, shard int) string {
	return fmt.Sprintf("STAGE#%s#%s#%02d", tenant, jobID, shard)
}

// parseJobPK reads tenant and job out of the partition key of a job.
func parseJobPK(pk string) (tenant string, job id.Job, ok bool) {
	rest, found := strings.CutPrefix(pk, "job#")
	tenant, jobText, cut := strings.Cut(rest, "#")
	job, valid := id.ParseJob(jobText)
	return tenant, job, found && cut && valid
}

func dueShard(pk string) string {
	h := fnv.New32a()
	h.Write([]byte(pk))
	return fmt.Sprintf("due#%d", h.Sum32()%dueShards)
}

func jobsAt(createdAt time.Time, job id.Job) string {
	return fmt.Sprintf("%015d#%s", createdAt.UnixMilli(), job)
}

func hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}
