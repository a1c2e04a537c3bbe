package httpapi

import (
	"strconv"
	"strings"

	"pintu/internal/fault"
)

// language of message texts. Codes, details and everything else are the same in every language.
type language string

const (
	english    language = "en"
	indonesian language = "id"
)

// languageOf picks from Accept-Language the one the client likes best; English unless it asks for Indonesian.
func languageOf(accept string) language {
	best, weight := english, 0.0
	for part := range strings.SplitSeq(accept, ",") {
		tag, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		q := quality(params)
		if l := language(primary); (l == english || l == indonesian) && q > weight {
			best, weight = l, q
		}
	}
	return best
}

func quality(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(p), "q="); ok {
			q, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return 0
			}
			return q
		}
	}
	return 1
}

// message gives the text for people. The English one says what happened to this request; the Indonesian one
// is chosen by code and leaves the particulars to details.
func (l language) message(code fault.Code, text string) string {
	if translated, ok := messagesID[code]; ok && l == indonesian {
		return translated
	}
	return text
}

var messagesID = map[fault.Code]string{
	fault.InvalidRequest:         "Permintaan tidak dapat dibaca; perbaiki setiap isian yang disebut di details.fields.",
	fault.IdempotencyKeyRequired: "Sertakan header Idempotency-Key agar permintaan yang diulang tidak dikerjakan dua kali.",
	fault.InvalidIdempotencyKey:  "Idempotency-Key harus 1 sampai 255 karakter ASCII yang terlihat, tanpa spasi.",
	fault.Unauthorized:           "Token tidak ada atau tidak berlaku; kirim header Authorization: Bearer dengan token yang sah.",
	fault.Forbidden:              "Token ini tidak memiliki izin yang disebut di details.required_scope.",
	fault.NotFound:               "Alamat ini tidak ada; lihat GET /v1/openapi.json untuk semua operasi.",
	fault.JobNotFound:            "Pekerjaan tidak ditemukan; periksa job_id.",
	fault.DatasetNotFound:        "Dataset tidak ditemukan; periksa namanya atau buat lebih dulu dengan PUT.",
	fault.VersionNotFound:        "Versi dataset ini tidak ada.",
	fault.RecordNotFound:         "Tidak ada data dengan kunci ini.",
	fault.RowNotFound:            "Baris ini tidak ada di karantina pekerjaan tersebut.",
	fault.ArtifactNotFound:       "Berkas hasil ini tidak ada; nama yang tersedia tercantum di result.artifacts.",
	fault.MethodNotAllowed:       "Metode HTTP ini tidak dilayani di alamat ini; lihat header Allow.",
	fault.KeyReused:              "Idempotency-Key ini sudah dipakai untuk permintaan lain; gunakan kunci baru untuk maksud baru.",
	fault.InvalidJobState:        "Status pekerjaan saat ini tidak mengizinkan tindakan ini; lihat details.status.",
	fault.InvalidRowState:        "Keadaan baris saat ini tidak mengizinkan tindakan ini; lihat details.state.",
	fault.UploadMismatch:         "Berkas yang diunggah tidak sama dengan yang dinyatakan; ajukan pekerjaan baru dengan keterangan yang benar.",
	fault.UploadNotFound:         "Berkas belum diunggah; kirim dulu ke URL unggahan, lalu ulangi.",
	fault.ArtifactExpired:        "Berkas hasil sudah dihapus karena masa simpannya habis.",
	fault.PreconditionFailed:     "Baris ini sudah diubah sejak Anda membacanya; baca lagi, lalu ulangi perubahan Anda.",
	fault.PreconditionRequired:   "Sertakan header If-Match dengan etag baris seperti yang Anda baca.",
	fault.PayloadTooLarge:        "Ukurannya melebihi batas di details.limit_bytes.",
	fault.UnsupportedMediaType:   "Kirim isi permintaan sebagai application/json dalam UTF-8.",
	fault.InvalidSchema:          "Definisi dataset tidak dapat dipakai; perbaiki yang disebut di details.fields.",
	fault.InvalidExpression:      "Ekspresi kolom terhitung tidak dapat dipakai; lihat tempatnya di details.",
	fault.RateLimited:            "Terlalu banyak permintaan; coba lagi setelah waktu di header Retry-After.",
	fault.TooManyActiveJobs:      "Terlalu banyak pekerjaan yang masih berjalan; tunggu sampai ada yang selesai, lalu coba lagi.",
	fault.Internal:               "Terjadi kesalahan di pihak kami; ulangi permintaan, dan sebutkan request_id bila tetap gagal.",
	fault.DependencyUnavailable:  "Layanan sedang sibuk; coba lagi setelah waktu di header Retry-After.",

	fault.UploadExpired:     "Waktu unggah habis; ajukan lagi dan unggah berkasnya.",
	fault.DeadLetterExpired: "Pekerjaan berhenti karena gangguan di pihak kami yang tidak diperbaiki pada waktunya; ajukan lagi.",
	fault.JobTimeLimit:      "Pekerjaan melewati batas waktunya.",
	fault.InvalidEncoding:   "Berkas tidak dapat dibaca sebagai UTF-8.",
	fault.FileNotText:       "Berkas ini bukan berkas teks; kirim sebagai CSV atau JSON Lines.",
	fault.EmptyFile:         "Berkas kosong.",
	fault.HeaderInvalid:     "Baris judul tidak dapat dipakai; tidak ada kolom yang dikenal.",
	fault.MissingColumns:    "Kolom yang wajib tidak ada di berkas; lihat details.",
	fault.DuplicateColumns:  "Nama kolom muncul lebih dari sekali di baris judul.",
	fault.MalformedCSV:      "Berkas tidak dapat dibaca sebagai CSV.",
	fault.MalformedJSONL:    "Berkas tidak dapat dibaca sebagai JSON Lines: tiap baris harus berisi satu objek.",
	fault.TooManyRejected:   "Terlalu banyak baris yang ditolak; perbaiki berkas lalu ajukan lagi.",
	fault.AllRowsRejected:   "Semua baris ditolak; lihat rejected.csv atau rejected.jsonl untuk alasannya.",
}
