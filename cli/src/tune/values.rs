//! The values of parameters that the command line gives to a search.

use std::str::FromStr;

use lapidary::kernels::space::Axis;

/// Values for some parameters of a kernel, such as `kwg=8,16 mr=4`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(Vec<(String, Vec<usize>)>);

impl FromStr for Values {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all: Vec<(String, Vec<usize>)> = Vec::new();
        for word in text.split_whitespace() {
            let (name, list) = word.split_once('=').ok_or_else(|| format!("`{word}` is not of the form name=value,value"))?;
            let numbers: Result<Vec<usize>, _> = list.split(',').map(str::parse).collect();
            let numbers = numbers.map_err(|_| format!("`{word}` holds no list of whole numbers"))?;
            if all.iter().any(|(known, _)| known == name) {
                return Err(format!("{name} is given twice"));
            }
            all.push((name.to_owned(), numbers));
        }
        Ok(Values(all))
    }
}

impl Values {
    /// Replaces the values of the parameters that are named. The others keep the values worth trying.
    ///
    /// # Errors
    /// The kernel has no parameter of a name.
    pub fn replace(&self, axes: &mut [Axis]) -> Result<(), String> {
        for (name, numbers) in &self.0 {
            let names: Vec<&str> = axes.iter().map(|axis| axis.name).collect();
            let axis = names.iter().position(|known| known == name);
            let axis = axis.ok_or_else(|| format!("`{name}` is no parameter; the parameters are {}", names.join(", ")))?;
            axes[axis].values.clone_from(numbers);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_replace_those_of_the_named_parameters() {
        let axis = |name, values: &[usize]| Axis { name, values: values.to_vec(), is_structural: name == "stages" };
        let mut axes = vec![axis("kwg", &[4, 8, 16]), axis("mr", &[1, 2]), axis("stages", &[1, 2])];
        let values: Values = "kwg=8,24  stages=2".parse().unwrap();
        assert_eq!(values.replace(&mut axes), Ok(()));
        assert_eq!(axes, [axis("kwg", &[8, 24]), axis("mr", &[1, 2]), axis("stages", &[2])]);
        let refused = |text: &str| text.parse::<Values>().unwrap().replace(&mut axes.clone()).unwrap_err();
        assert_eq!(refused("nr=2"), "`nr` is no parameter; the parameters are kwg, mr, stages");
        for (text, reason) in [
            ("kwg", "`kwg` is not of the form name=value,value"),
            ("kwg=8 mr=", "`mr=` holds no list of whole numbers"),
            ("kwg=8,-1", "`kwg=8,-1` holds no list"),
            ("kwg=8 kwg=4", "kwg is given twice"),
        ] {
            assert!(text.parse::<Values>().unwrap_err().contains(reason), "{text}");
        }
    }
}
