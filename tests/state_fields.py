"""The fields of a state stream that must agree with the cache: where they stand and what another value leads to."""

from tests.streams import CHANNELS, ROWS

FIELDS = [
    ("too_many_cells", ROWS, 0, "I", 5, 4, "cell_count at byte 0 is 5; allowed: 4 at most"),
    ("bad_seq_id", ROWS, 16, "i", 2, 20, "seq_id of cell 0 at byte 16 is 2; allowed: 0 to 1"),
    ("bad_seq_id", ROWS, 28, "i", -1, 32, "seq_id of cell 1 at byte 28 is -1; allowed: 0 to 1"),
    ("bad_pos", ROWS, 20, "i", -5, 24, "pos of cell 1 at byte 20 is -5; allowed: 0 to 2,147,483,647"),
    ("layer_count", ROWS, 36, "I", 2, 40, "number of layers at byte 36 is 2; allowed: 1"),
    ("v_trans", ROWS, 32, "I", 3, 40, "v_trans at byte 32 is 3; allowed: 0"),
    ("v_trans", CHANNELS, 32, "I", 0, 40, "v_trans at byte 32 is 0; allowed: 1"),
    ("key_type", ROWS, 40, "i", 8, 44, "K type of layer 0 at byte 40 is q8_0 (8); allowed: f16 (1)"),
    ("key_type", ROWS, 40, "i", -9, 44, "K type of layer 0 at byte 40 is no known type (-9); allowed: f16 (1)"),
    ("key_row_size", ROWS, 44, "Q", 2**63, 52, "K row size of layer 0 at byte 44 is 9,223,372,036,854,775,808 bytes"),
    ("value_type", ROWS, 60, "i", 0, 64, "V type of layer 0 at byte 60 is f32 (0); allowed: f16 (1)"),
    ("value_type", CHANNELS, 60, "i", 0, 64, "V type of layer 0 at byte 60 is f32 (0); allowed: f16 (1)"),
    ("value_row_size", ROWS, 64, "Q", 6, 72, "V row size of layer 0 at byte 64 is 6 bytes; allowed: 4 bytes"),
    ("value_el_size", CHANNELS, 64, "I", 4, 68, "V element size of layer 0 at byte 64 is 4 bytes; allowed: 2 bytes"),
    ("value_gqa", CHANNELS, 68, "I", 3, 72, "V channels of layer 0 at byte 68 is 3; allowed: 2"),
]
