// Package s3blob keeps inputs and artifacts in S3: presigned permissions for clients, reads of pinned
// versions by range, streaming writes. It refuses to hold a whole object in memory and to read any
// version but the one it was told.
package s3blob

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"pintu/internal/fault"
	"pintu/internal/importer"
	"pintu/internal/job"
)

var (
	_ job.Blob      = (*Blob)(nil)
	_ importer.Blob = (*Blob)(nil)
)

// Blob is one bucket.
type Blob struct {
	client  *s3.Client
	presign *s3.PresignClient
	upload  *transfermanager.Client
	bucket  string
	life    time.Duration // of presigned URLs
	now     func() time.Time
}

// Config names the bucket. PublicEndpoint is the address clients reach it by, when that is not the one
// this process uses; a signature covers the host.
type Config struct {
	AWS            aws.Config
	Bucket         string
	PublicEndpoint string
	PathStyle      bool
	URLLife        time.Duration // 0 means job.DefaultURLLife
	Now            func() time.Time
}

// partBytes is the size of a part of an artifact; parts are sent one after the other, so a writer needs
// about twice that much memory.
const partBytes = 8 << 20

// New makes a Blob.
func New(c Config) *Blob {
	client := s3.NewFromConfig(c.AWS, options(c, ""))
	public := s3.NewFromConfig(c.AWS, options(c, c.PublicEndpoint))
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.URLLife == 0 {
		c.URLLife = job.DefaultURLLife
	}
	return &Blob{
		client: client, presign: s3.NewPresignClient(public), bucket: c.Bucket, life: c.URLLife, now: c.Now,
		upload: transfermanager.New(client, func(o *transfermanager.Options) { o.PartSizeBytes, o.Concurrency = partBytes, 1 }),
	}
}

func options(c Config, endpoint string) func(*s3.Options) {
	return func(o *s3.Options) {
		o.UsePathStyle = c.PathStyle
		// Else a presigned PUT would carry the checksum of an empty body.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
	}
}

// PresignPut makes a permission to upload one file once: exactly its length and type, its checksum when
// declared, and only while nothing is there.
func (b *Blob) PresignPut(ctx context.Context, key string, f job.File) (job.Grant, error) {
	in := &s3.PutObjectInput{Bucket: &b.bucket, Key: &key, ContentLength: &f.SizeBytes, ContentType: &f.ContentType, IfNoneMatch: aws.String("*")}
	sum, err := hex.DecodeString(f.SHA256)
	if err != nil {
		return job.Grant{}, fmt.Errorf("declared sha256: %w", err)
	}
	if f.SizeBytes == 0 && f.SHA256 == "" {
		none := sha256.Sum256(nil) // a length of 0 cannot be signed, so the checksum binds it
		sum = none[:]
	}
	if len(sum) > 0 {
		in.ChecksumSHA256 = aws.String(base64.StdEncoding.EncodeToString(sum))
	}
	expires := b.now().UTC().Add(b.life)
	req, err := b.presign.PresignPutObject(ctx, in, s3.WithPresignExpires(b.life))
	if err != nil {
		return job.Grant{}, fmt.Errorf("sign upload: %w", err)
	}
	send := headers(req)
	send["Content-Type"], send["Content-Length"] = f.ContentType, strconv.FormatInt(f.SizeBytes, 10) // unsigned when the length is 0
	return job.Grant{Method: req.Method, URL: req.URL, Headers: send, ExpiresAt: expires}, nil
}

// headers are those that were signed and that a client must set itself.
func headers(req *v4.PresignedHTTPRequest) map[string]string {
	out := map[string]string{}
	for name, values := range req.SignedHeader {
		if name != "Host" && name != "host" && len(values) > 0 {
			out[http.CanonicalHeaderKey(name)] = values[0]
		}
	}
	return out
}

// PresignGet makes a permission to download one version under a name of its own.
func (b *Blob) PresignGet(ctx context.Context, key, versionID, downloadName string) (string, time.Time, error) {
	expires := b.now().UTC().Add(b.life)
	in := &s3.GetObjectInput{Bucket: &b.bucket, Key: &key,
		ResponseContentDisposition: aws.String(mime.FormatMediaType("attachment", map[string]string{"filename": downloadName}))}
	if versionID != "" {
		in.VersionId = &versionID
	}
	req, err := b.presign.PresignGetObject(ctx, in, s3.WithPresignExpires(b.life))
	if err != nil {
		return "", time.Time{}, fmt.Errorf("sign download: %w", err)
	}
	return req.URL, expires, nil
}

// Head tells what is stored under key now.
func (b *Blob) Head(ctx context.Context, key string) (job.Object, bool, error) {
	out, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.bucket, Key: &key, ChecksumMode: types.ChecksumModeEnabled})
	if status(err) == http.StatusNotFound {
		return job.Object{}, false, nil
	}
	if err != nil {
		return job.Object{}, false, unavailable("look at the upload", err)
	}
	obj := job.Object{VersionID: aws.ToString(out.VersionId), SizeBytes: aws.ToInt64(out.ContentLength), ContentType: aws.ToString(out.ContentType)}
	if sum, err := base64.StdEncoding.DecodeString(aws.ToString(out.ChecksumSHA256)); err == nil && len(sum) == 32 {
		obj.SHA256 = hex.EncodeToString(sum)
	}
	return obj, true, nil
}

// Open reads bytes [from, to) of one version; to < 0 means to the end. A connection that breaks is taken
// up again where it broke; a body that ends early is an error.
func (b *Blob) Open(ctx context.Context, key, versionID string, from, to int64) (io.ReadCloser, error) {
	r := &ranged{ctx: ctx, blob: b, key: key, versionID: versionID, at: from, to: to}
	return r, r.open()
}

// Put streams an object of unknown length. It gives the version that was made.
func (b *Blob) Put(ctx context.Context, key, contentType string, body io.Reader) (string, error) {
	out, err := b.upload.UploadObject(ctx, &transfermanager.UploadObjectInput{Bucket: &b.bucket, Key: &key, ContentType: &contentType, Body: body})
	if err != nil {
		return "", unavailable("write "+key, err)
	}
	return aws.ToString(out.VersionID), nil
}

// ranged is a read of a range that survives broken connections.
type ranged struct {
	ctx            context.Context
	blob           *Blob
	key, versionID string
	at, to         int64 // to < 0: not known before the first answer
	body           io.ReadCloser
	breaks         int
}

// maxBreaks bounds how many broken connections in a row one read survives. Progress sets it back.
const maxBreaks = 5

func (r *ranged) open() error {
	if r.to >= 0 && r.at >= r.to {
		r.body = http.NoBody
		return nil
	}
	span := "bytes=" + strconv.FormatInt(r.at, 10) + "-"
	if r.to >= 0 {
		span += strconv.FormatInt(r.to-1, 10)
	}
	in := &s3.GetObjectInput{Bucket: &r.blob.bucket, Key: &r.key, Range: &span}
	if r.versionID != "" {
		in.VersionId = &r.versionID
	}
	out, err := r.blob.client.GetObject(r.ctx, in)
	if err != nil {
		return unavailable("read input", err)
	}
	if r.to < 0 {
		r.to = r.at + aws.ToInt64(out.ContentLength)
	}
	r.body = out.Body
	return nil
}

func (r *ranged) Read(p []byte) (int, error) {
	for {
		n, err := r.body.Read(p)
		r.at += int64(n)
		if n > 0 {
			r.breaks = 0
			return n, nil
		}
		if r.at >= r.to && (err == nil || errors.Is(err, io.EOF)) {
			return 0, io.EOF
		}
		if err == nil {
			continue
		}
		if r.breaks++; r.breaks > maxBreaks || r.ctx.Err() != nil {
			return 0, fmt.Errorf("read input at byte %d: %w", r.at, errors.Join(io.ErrUnexpectedEOF, err))
		}
		if err := errors.Join(r.body.Close(), r.open()); err != nil {
			return 0, err
		}
	}
}

func (r *ranged) Close() error {
	if r.body == nil {
		return nil
	}
	return r.body.Close()
}

// status is the HTTP status of the store's answer, 0 when it gave none.
func status(err error) int {
	var re *smithyhttp.ResponseError
	if errors.As(err, &re) {
		return re.HTTPStatusCode()
	}
	return 0
}

func unavailable(op string, err error) error {
	return fault.Wrap(err, fault.DependencyUnavailable, "the object store did not answer (%s); try again", op).After(time.Second)
}
